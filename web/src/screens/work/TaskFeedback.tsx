import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, data, type Schemas } from "@/api/client";
import { keys } from "@/api/queries";
import { failed } from "@/ui/toast";
import { MessageBox } from "./MessageBox";

/** Work that is in review goes back to its agent with what should be different. */
export function TaskFeedback({ task }: { task: Schemas["Task"] }) {
  const queries = useQueryClient();
  const send = useMutation({
    mutationFn: (feedback: string) =>
      data(api.POST("/api/v1/tasks/{id}/move", { params: { path: { id: task.id } }, body: { status: "in_progress", feedback } as Schemas["TaskMove"] })),
    onError: (error) => failed("The feedback was not sent", error),
    onSettled: () => queries.invalidateQueries({ queryKey: keys.task(task.id) }),
  });
  if (task.status !== "in_review") return null;
  return (
    <MessageBox
      label="Feedback to the agent"
      placeholder="What should be different? The agent goes on, on the same branch."
      action="Send back"
      busy={send.isPending}
      onSend={(text) => send.mutateAsync(text)}
    />
  );
}
