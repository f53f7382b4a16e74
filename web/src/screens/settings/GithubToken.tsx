import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { CircleCheck, CircleDashed } from "lucide-react";
import type { FormEvent } from "react";
import { api, data } from "@/api/client";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Field, Input } from "@/ui/field";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { Ago } from "@/ui/time";
import { done, failed } from "@/ui/toast";

const QUERY = ["github", "token"];
const PATH = "/api/v1/auth/github-token";
const WHO = {
  user: "The pull requests of your tasks are opened in your name, with this token.",
  bot: "The pull requests of your tasks are opened by the server's bot; a token of yours is not used (pull_request_identity).",
  app: "The pull requests of your tasks are opened by the server's GitHub App; a token of yours is not used (pull_request_identity).",
};

/** The token that acts in the user's name. It goes to the server and never comes back. */
export function GithubToken() {
  const queries = useQueryClient();
  const token = useQuery({ queryKey: QUERY, queryFn: () => data(api.GET(PATH)) });
  const again = () => queries.invalidateQueries({ queryKey: QUERY });
  const give = useMutation({
    mutationFn: (text: string) => data(api.PUT(PATH, { body: { token: text } })),
    onSuccess: again,
  });
  const take = useMutation({
    mutationFn: () => data(api.DELETE(PATH)),
    onSuccess: () => done("The server has no token of yours any more"),
    onError: (error) => failed("The token could not be deleted", error),
    onSettled: again,
  });
  if (token.isPending) return <SkeletonRows rows={1} />;
  if (token.isError) return <ErrorState error={token.error} onRetry={() => void token.refetch()} />;
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    give.mutate(String(new FormData(form).get("token")).trim(), { onSuccess: () => form.reset() });
  };
  return (
    <div className="grid gap-3 p-4">
      <p className="text-muted">{WHO[token.data.identity]}</p>
      <p className="flex flex-wrap items-center gap-2">
        {token.data.set ? (
          <>
            <Badge tone="ok" icon={CircleCheck}>
              A token of {token.data.login}
            </Badge>
            <span className="text-[13px] text-muted">
              given <Ago time={token.data.created_at!} />
            </span>
            <Button small look="danger" busy={take.isPending} onClick={() => take.mutate()}>
              Delete your token
            </Button>
          </>
        ) : (
          <Badge tone={token.data.identity === "user" ? "warn" : "neutral"} icon={CircleDashed}>
            No token of yours
          </Badge>
        )}
      </p>
      <form onSubmit={submit} className="flex items-end gap-2">
        <div className="w-72">
          <Field label={token.data.set ? "Another GitHub token" : "Your GitHub token"} error={give.error?.message}>
            <Input name="token" type="password" autoComplete="off" required minLength={8} maxLength={500} />
          </Field>
        </div>
        <Button type="submit" busy={give.isPending} className="mb-3">
          Give it
        </Button>
      </form>
    </div>
  );
}
