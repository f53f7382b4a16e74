import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { ScrollText, X } from "lucide-react";
import { api, data } from "@/api/client";
import { Button } from "@/ui/button";
import { SearchInput } from "@/ui/field";
import { Card, Page } from "@/ui/page";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { Entries, type Filter } from "./Entries";

const PAGE = 100;

/** Every call that changed something or tried to, newest first. */
export default function Audit() {
  const search = useSearch({ strict: false }) as Filter & { entry?: string };
  const navigate = useNavigate();
  const set = (change: Partial<typeof search>) =>
    void navigate({ to: "/audit", search: { ...search, ...change }, replace: true });
  const filtered = Boolean(search.actor || search.target);
  const audit = useInfiniteQuery({
    queryKey: ["audit", search.actor ?? "", search.target ?? ""],
    initialPageParam: undefined as number | undefined,
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/audit", {
          params: {
            query: { limit: PAGE, before: pageParam, actor_id: search.actor || undefined, target: search.target || undefined },
          },
        }),
      ),
    getNextPageParam: (last) => last.next ?? undefined,
  });
  const entries = audit.data?.pages.flatMap((page) => page.entries) ?? [];
  return (
    <Page
      title="Audit log"
      filters={
        <>
          <SearchInput
            label="User"
            placeholder="User"
            className="min-w-32 flex-1 sm:w-40"
            value={search.actor ?? ""}
            onChange={(event) => set({ actor: event.target.value || undefined })}
          />
          <SearchInput
            label="About"
            placeholder="Id of an object"
            className="min-w-44 flex-1 sm:w-56"
            value={search.target ?? ""}
            onChange={(event) => set({ target: event.target.value || undefined })}
          />
        </>
      }
    >
      <Card>
        {audit.isPending ? (
          <SkeletonRows rows={10} />
        ) : audit.isError ? (
          <ErrorState error={audit.error} onRetry={() => void audit.refetch()} />
        ) : entries.length === 0 ? (
          filtered ? (
            <EmptyState
              icon={ScrollText}
              title="Nothing matches"
              action={
                <Button icon={<X aria-hidden className="size-4" />} onClick={() => set({ actor: undefined, target: undefined })}>
                  Clear the filters
                </Button>
              }
            />
          ) : (
            <EmptyState icon={ScrollText} title="Nothing was changed yet" />
          )
        ) : (
          <Entries
            entries={entries}
            open={search.entry}
            onOpen={(entry) => set({ entry })}
            onFilter={(filter) => set({ actor: undefined, target: undefined, ...filter })}
          />
        )}
        {audit.hasNextPage && (
          <div className="border-t border-line p-3 text-center">
            <Button busy={audit.isFetchingNextPage} onClick={() => void audit.fetchNextPage()}>
              Load earlier
            </Button>
          </div>
        )}
      </Card>
    </Page>
  );
}
