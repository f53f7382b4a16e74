import { useMutation } from "@tanstack/react-query";
import { SquareCode } from "lucide-react";
import { api, data } from "@/api/client";
import { Button } from "@/ui/button";
import { safeLink } from "@/ui/format";
import { failed } from "@/ui/toast";

/** Opens the editor of a sandbox in a tab of its own, which has the way in from the server. */
export function EditorButton({ id }: { id: string }) {
  const open = useMutation({
    mutationFn: () => data(api.POST("/api/v1/sandboxes/{id}/editor", { params: { path: { id } } })),
    onError: (error) => failed(`The editor of ${id} did not open`, error),
  });
  const click = () => {
    // Now: later a browser takes it for a pop-up that nobody asked for.
    const tab = window.open("about:blank", "_blank");
    if (tab) tab.opener = null;
    open.mutate(undefined, {
      onSuccess: ({ url }) => {
        const address = safeLink(url);
        if (address) tab?.location.replace(address);
      },
      onError: () => tab?.close(),
    });
  };
  return (
    <Button small busy={open.isPending} icon={<SquareCode aria-hidden className="size-4" />} onClick={click}>
      Editor
    </Button>
  );
}
