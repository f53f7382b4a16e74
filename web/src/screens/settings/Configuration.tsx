import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { SlidersHorizontal } from "lucide-react";
import { json } from "@/api/client";
import { Badge } from "@/ui/badge";
import { cx } from "@/ui/classes";
import { SearchInput } from "@/ui/field";
import { capitalized } from "@/ui/format";
import { Card } from "@/ui/page";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";

interface Setting {
  name: string;
  value: unknown;
  default: unknown;
  source: "default" | "environment" | "file" | "option";
  secret: boolean;
  description: string;
}

const shown = (value: unknown) => (typeof value === "string" ? value || "not set" : JSON.stringify(value));

/** A sentence, with its `names` as code. */
function Description({ text }: { text: string }) {
  const parts = capitalized(text).replace(/[^.]$/, "$&.").split("`");
  // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text have no other name
  return parts.map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part));
}

/** What the server runs with, and where each value comes from. They are set where it is started. */
export function Configuration({ title, only }: { title: string; only?: RegExp }) {
  const search = useSearch({ strict: false }) as { q?: string };
  const navigate = useNavigate();
  const settings = useQuery({
    queryKey: ["settings"],
    queryFn: async () => (await json<{ settings: Setting[] }>("/api/v1/settings")).settings,
  });
  if (settings.isPending) return <SkeletonRows rows={10} />;
  if (settings.isError) return <ErrorState error={settings.error} onRetry={() => void settings.refetch()} />;
  const wanted = (search.q ?? "").toLowerCase();
  const found = settings.data.filter(
    (each) => (!only || only.test(each.name)) && (each.name + each.description).toLowerCase().includes(wanted),
  );
  return (
    <Card
      title={title}
      actions={
        <SearchInput
          label="Find a setting"
          className="w-40 sm:w-56"
          defaultValue={search.q}
          onChange={(event) => void navigate({ to: ".", search: { q: event.target.value || undefined }, replace: true })}
        />
      }
    >
      <p className="border-b border-line px-4 py-2 text-[13px] text-muted">
        Read-only here. Set them by the environment (<code>CAISSON_NAME</code>), the file given by <code>--config</code> or an option of{" "}
        <code>caisson serve</code>.
      </p>
      {found.length === 0 ? (
        <EmptyState icon={SlidersHorizontal} title="No setting matches" />
      ) : (
        <ul className="divide-y divide-line">
          {found.map((each) => (
            <li key={each.name} className="grid gap-x-4 px-4 py-2 md:grid-cols-[16rem_1fr]">
              <code className="font-mono text-[13px] break-all">{each.name}</code>
              <div className="min-w-0">
                <p className="flex flex-wrap items-center gap-2">
                  <code className={cx("font-mono text-[13px] break-all", each.value === "" && "text-muted")}>{shown(each.value)}</code>
                  {each.source !== "default" && <Badge tone="info">{each.source}</Badge>}
                  {each.secret && <Badge>secret</Badge>}
                </p>
                <p className="text-[13px] text-muted">
                  <Description text={each.description} />
                  {each.source !== "default" && !each.secret && ` Default: ${shown(each.default)}.`}
                </p>
              </div>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
