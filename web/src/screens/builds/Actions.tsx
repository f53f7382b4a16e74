import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Ban, BookText, Download, Ellipsis, Pause, Pencil, Trash2 } from "lucide-react";
import { Suspense, useState } from "react";
import { api, data } from "@/api/client";
import { keys } from "@/api/queries";
import { answers } from "@/components/preview/machine";
import { Button, buttonClass, IconButton } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { saveAddress } from "@/ui/download";
import { lazily } from "@/ui/lazily";
import { Menu, type MenuItem } from "@/ui/menu";
import { done, failed } from "@/ui/toast";
import { type Build, isOver } from "./queries";

const CreateBuildDialog = lazily(() => import("./CreateBuildDialog"));

const nameOf = (build: Build) => [build.project, build.build_version].filter(Boolean).join(" ");

function useCalls(build: Build) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const params = { path: { id: build.id } };
  const fresh = () => queries.invalidateQueries({ queryKey: keys.builds });
  const cancel = useMutation({
    mutationFn: () => data(api.POST("/api/v1/builds/{id}/cancel", { params })),
    onSettled: fresh,
    onError: (error) => failed(`${build.project} was not canceled`, error),
  });
  const pause = useMutation({
    mutationFn: () => data(api.POST("/api/v1/builds/{id}/pause", { params })),
    onSettled: fresh,
    onError: (error) => failed("The preview was not paused", error),
  });
  const remove = useMutation({
    mutationFn: () => data(api.DELETE("/api/v1/builds/{id}", { params })),
    onSuccess: async () => {
      done(`${nameOf(build)} was deleted`);
      await navigate({ to: "/builds", search: {} });
      await fresh();
    },
    onError: (error) => failed(`${nameOf(build)} was not deleted`, error),
  });
  return { cancel, pause, remove };
}

/** What can be done with a build in the state it is in. */
export function Actions({ build }: { build: Build }) {
  const [dialog, setDialog] = useState<"change" | "cancel" | "delete" | null>(null);
  const { cancel, pause, remove } = useCalls(build);
  const close = () => setDialog(null);
  const more: MenuItem[] = [
    ...(build.docs_ready
      ? [{ label: "Download the documentation", icon: <BookText aria-hidden className="size-4" />, onSelect: () => saveAddress(`/api/v1/builds/${build.id}/docs/download`) }]
      : []),
    ...(isOver(build) ? [{ label: "Delete", icon: <Trash2 aria-hidden className="size-4" />, danger: true, onSelect: () => setDialog("delete") }] : []),
  ];
  return (
    <>
      {build.state === "ready" && answers(build.preview_state) && (
        <Button small busy={pause.isPending} icon={<Pause aria-hidden className="size-4" />} onClick={() => pause.mutate()}>
          Pause
        </Button>
      )}
      {build.build_version && (
        <a href={`/api/v1/builds/${build.id}/archive`} download className={buttonClass("plain", true)}>
          <Download aria-hidden className="size-4" /> Download
        </a>
      )}
      {build.state === "ready" && (
        <Button small look="primary" icon={<Pencil aria-hidden className="size-4" />} onClick={() => setDialog("change")}>
          Change
        </Button>
      )}
      {!isOver(build) && (
        <Button small look="danger" icon={<Ban aria-hidden className="size-4" />} onClick={() => setDialog("cancel")}>
          Cancel
        </Button>
      )}
      {more.length > 0 && (
        <Menu
          label={`More for ${nameOf(build)}`}
          items={more}
          trigger={
            <IconButton label="More" small>
              <Ellipsis aria-hidden className="size-4" />
            </IconButton>
          }
        />
      )}
      <Suspense>{dialog === "change" && <CreateBuildDialog parent={build} onClose={close} />}</Suspense>
      <ConfirmDialog
        open={dialog === "cancel"}
        onClose={close}
        onConfirm={() => cancel.mutate(undefined, { onSettled: close })}
        busy={cancel.isPending}
        title={`Cancel the build of ${build.project}`}
        lost="What it has made so far is lost. The version before comes back."
        action="Cancel the build"
      />
      <ConfirmDialog
        open={dialog === "delete"}
        onClose={close}
        onConfirm={() => remove.mutate(undefined, { onSettled: close })}
        busy={remove.isPending}
        title={`Delete ${nameOf(build)}`}
        lost="Its files, its preview and its log are lost. Other versions of the project stay."
        action="Delete the build"
      />
    </>
  );
}
