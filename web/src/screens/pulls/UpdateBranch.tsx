import { useMutation, useQueryClient } from "@tanstack/react-query";
import { GitMerge } from "lucide-react";
import { Button } from "@/ui/button";
import { repoName } from "@/ui/format";
import { done, failed } from "@/ui/toast";
import { updateBranch } from "../board/actions";
import type { PullRequest, Task } from "./data";

/** For a branch that lacks commits of its base. Nothing for one that GitHub does not call "behind". */
export function UpdateBranch({ task, pull }: { task: Task; pull: PullRequest }) {
  const queries = useQueryClient();
  const update = useMutation({
    mutationFn: () => updateBranch(task, pull.head_sha),
    onSuccess: () => done(`The branch of #${pull.number} gets what is new on ${pull.base}`),
    onError: (error) => failed(`The branch of #${pull.number} stays as it was`, error),
    onSettled: () => queries.invalidateQueries({ queryKey: ["github", repoName(task.repo_url)] }),
  });
  if (pull.mergeable_state !== "behind") return null;
  return (
    <Button small busy={update.isPending} icon={<GitMerge aria-hidden className="size-4" />} onClick={() => update.mutate()}>
      Update branch
    </Button>
  );
}
