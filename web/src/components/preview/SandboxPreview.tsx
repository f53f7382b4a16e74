import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { CircleX, Hourglass, LoaderCircle, Moon, Play, Plug, RotateCw } from "lucide-react";
import { ApiError, type Schemas, api, data } from "@/api/client";
import { keys } from "@/api/queries";
import { Button } from "@/ui/button";
import { useParam } from "@/ui/url";
import { failed } from "@/ui/toast";
import { EditorButton } from "./EditorButton";
import { PreviewFrame, type Service } from "./PreviewFrame";
import { portsQuery } from "./ports";
import { StateCard } from "./StateCard";

const nameOf = (port: Schemas["Port"]) => (port.process ? `${port.port} ${port.process}` : String(port.port));

/** The ports of a sandbox that something listens on. */
export function SandboxPreview({ id }: { id: string }) {
  const queries = useQueryClient();
  const [wanted, setWanted] = useParam("port");
  // No event tells that a program began to listen.
  const ports = useQuery({
    ...portsQuery(id),
    retry: false,
    staleTime: 0,
    refetchInterval: ({ state }) => (state.data?.ports.length === 0 ? 3000 : false),
  });
  const resume = useMutation({
    mutationFn: () => data(api.POST("/api/v1/sandboxes/{id}/resume", { params: { path: { id } } })),
    onSuccess: () => Promise.all([keys.sandbox(id), ["ports", id]].map((queryKey) => queries.invalidateQueries({ queryKey }))),
    onError: (error) => failed(`The sandbox ${id} was not resumed`, error),
  });
  // The editor lets nobody frame it.
  const editor = ports.data?.services.editor;
  const framed = ports.data?.ports.filter(({ port }) => port !== editor?.port) ?? [];
  const services: Service[] = framed.map((port) => ({ label: nameOf(port), url: port.url }));
  const service = services.find((each) => each.label.split(" ")[0] === wanted) ?? services[0];
  const again = (
    <Button busy={ports.isFetching} icon={<RotateCw aria-hidden className="size-4" />} onClick={() => void ports.refetch()}>
      Look again
    </Button>
  );
  const status = ports.error instanceof ApiError ? ports.error.status : 0;
  const card = () => {
    if (resume.isPending) return <StateCard state="resuming" tone="info" icon={LoaderCircle} spin title="Waking the sandbox" />;
    if (ports.isPending) return <StateCard state="checking" icon={LoaderCircle} spin title="Looking for open ports" />;
    if (status === 409)
      return (
        <StateCard
          state="paused"
          tone="warn"
          icon={Moon}
          title="The sandbox is paused"
          actions={
            <Button look="primary" icon={<Play aria-hidden className="size-4" />} onClick={() => resume.mutate()}>
              Resume
            </Button>
          }
        >
          Its files and processes are kept.
        </StateCard>
      );
    if (status === 404) return <StateCard state="expired" icon={Hourglass} title="The sandbox has ended" />;
    if (ports.error)
      return (
        <StateCard state="error" tone="bad" icon={CircleX} title="The ports could not be read" actions={again}>
          {ports.error.message}
        </StateCard>
      );
    if (!service)
      return (
        <StateCard state="loading" icon={Plug} title="Nothing listens yet" actions={again}>
          Start a server in the sandbox: its page shows up here.
        </StateCard>
      );
    return undefined;
  };
  return (
    <PreviewFrame
      services={services}
      service={service}
      onService={(label) => setWanted(label.split(" ")[0])}
      tools={editor && <EditorButton id={id} />}
    >
      {card()}
    </PreviewFrame>
  );
}
