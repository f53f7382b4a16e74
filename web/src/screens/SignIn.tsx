import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { json } from "@/api/client";
import { keys, methodsQuery } from "@/api/queries";
import { Button, buttonClass } from "@/ui/button";
import { Field, FormError, Input } from "@/ui/field";
import { useTitle } from "@/ui/page";
import { useUrl } from "@/ui/url";

type Credentials = { api_key: string } | { name: string; password: string };

/** Only places of this page: an address given from outside must not lead elsewhere. */
const within = (next: string | undefined) => (next?.startsWith("/") && !next.startsWith("//") ? next : "/");

export function SignIn() {
  useTitle("Sign in");
  const [url, change] = useUrl();
  const way = url.way === "password" ? "password" : "key";
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const next = within(url.next);
  const methods = useQuery(methodsQuery).data;
  const queries = useQueryClient();
  const navigate = useNavigate();

  const signIn = async (credentials: Credentials) => {
    setBusy(true);
    setError("");
    try {
      await json("/api/v1/auth/login", { json: credentials });
      await queries.invalidateQueries({ queryKey: keys.me });
      await navigate({ href: next, replace: true });
    } catch (problem) {
      setError((problem as Error).message);
    } finally {
      setBusy(false);
    }
  };

  // The address that the server prints at its start carries a key behind the #: it never leaves the browser
  // but for this call, and is taken out of the address at once.
  const tried = useRef(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once
  useEffect(() => {
    const key = new URLSearchParams(location.hash.slice(1)).get("key");
    if (!key || tried.current) return;
    tried.current = true;
    history.replaceState(null, "", location.pathname + location.search);
    void signIn({ api_key: key });
  }, []);

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    void signIn(way === "key" ? { api_key: text("key") } : { name: text("name"), password: String(form.get("password")) });
  };

  return (
    <main className="grid min-h-full place-items-center p-4">
      <div className="w-full max-w-sm">
        <img src="/app/icon.svg" alt="" className="mx-auto mb-4 size-12" />
        <h1 className="mb-1 text-center text-xl font-semibold">Sign in to Caisson</h1>
        <p className="mb-6 text-center text-muted">Every coding agent gets its own machine.</p>
        <form onSubmit={submit} className="rounded-xl border border-line bg-panel p-5 shadow-float">
          {way === "key" ? (
            <Field
              label="API key"
              hint="The server printed it when it started; it is also in the file api-key of its data directory."
            >
              <Input name="key" type="password" autoComplete="off" spellCheck={false} required autoFocus />
            </Field>
          ) : (
            <>
              <Field label="Name">
                <Input name="name" autoComplete="username" required autoFocus />
              </Field>
              <Field label="Password">
                <Input name="password" type="password" autoComplete="current-password" required />
              </Field>
            </>
          )}
          {error && <FormError>{error}</FormError>}
          <Button type="submit" look="primary" busy={busy} className="w-full">
            Sign in
          </Button>
          <Button look="ghost" className="mt-2 w-full" onClick={() => change({ way: way === "key" ? "password" : undefined })}>
            {way === "key" ? "Use a name and a password" : "Use an API key"}
          </Button>
          {methods?.github && (
            <a
              href="/api/v1/auth/github"
              className={buttonClass("plain", false, "mt-2 w-full")}
            >
              Sign in with GitHub
            </a>
          )}
        </form>
      </div>
    </main>
  );
}
