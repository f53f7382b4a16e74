import { useQueries, useQuery } from "@tanstack/react-query";
import { GitPullRequest, SearchX } from "lucide-react";
import { focusedRowId, useRows } from "@/shell/rows";
import { useShortcuts } from "@/shell/shortcuts";
import { Button } from "@/ui/button";
import { SearchInput } from "@/ui/field";
import { repoName } from "@/ui/format";
import { Page } from "@/ui/page";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { Tabs } from "@/ui/tabs";
import { useUrl } from "@/ui/url";
import { type PullState, pullTasksQuery, repositoryQuery, stateOf, type Task } from "./data";
import { PullRow } from "./Row";

const TABS: { id: string; label: string; states: PullState[] }[] = [
  { id: "open", label: "Open", states: ["open", "draft"] },
  { id: "merged", label: "Merged", states: ["merged"] },
  { id: "closed", label: "Closed", states: ["closed"] },
  { id: "all", label: "All", states: ["open", "draft", "merged", "closed"] },
];
// GitHub counts requests: the checks of so many are shown without being asked for.
const CHECKED = 20;

/** The state of every task's pull request; one request per repository. */
function useStates(tasks: Task[]): Map<string, PullState> {
  const repos = [...new Set(tasks.map((task) => repoName(task.repo_url)))];
  const answers = useQueries({ queries: repos.map(repositoryQuery) });
  return new Map(
    tasks.map((task) => {
      const pulls = answers[repos.indexOf(repoName(task.repo_url))]?.data;
      return [task.id, stateOf(task, pulls?.find((pull) => pull.number === task.pull_request_number))];
    }),
  );
}

export default function Pulls() {
  const [url, change] = useUrl();
  const query = useQuery(pullTasksQuery);
  const tasks = query.data ?? [];
  const states = useStates(tasks);
  const tab = TABS.find((each) => each.id === url.state) ?? (TABS[0] as (typeof TABS)[number]);
  const toggle = (id: string) => change({ pull: url.pull === id ? undefined : id });
  const look = () => {
    const id = focusedRowId();
    return id ? toggle(id) : false;
  };
  useRows("Pull requests", "pull request");
  useShortcuts([{ keys: "Space", label: "Details of the pull request", scope: "Pull requests", run: look }]);
  const words = (url.q ?? "").toLowerCase().split(/\s+/);
  const found = tasks.filter((task) => {
    const text = `#${task.pull_request_number} ${task.title} ${task.repo_url} ${task.git_branch}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const inTab = (states_: PullState[]) => found.filter((task) => states_.includes(states.get(task.id) ?? "open"));

  const content = (shown: Task[]) => {
    if (query.error && !query.data) return <ErrorState error={query.error} onRetry={() => void query.refetch()} />;
    if (!query.data) return <SkeletonRows height="h-11" />;
    if (tasks.length === 0)
      return (
        <EmptyState icon={GitPullRequest} title="No pull requests yet">
          When an agent finishes a task on a repository, its pull request is listed here.
        </EmptyState>
      );
    if (shown.length === 0)
      return (
        <EmptyState
          icon={SearchX}
          title={url.q ? "No pull request matches" : `None is ${tab.label.toLowerCase()}`}
          action={<Button onClick={() => change({ q: undefined, state: "all" })}>Show all</Button>}
        />
      );
    return (
      <ul className="m-4 divide-y divide-line overflow-hidden rounded-lg border border-line bg-panel">
        {shown.map((task, index) => {
          const state = states.get(task.id) ?? "open";
          return (
            <PullRow
              key={task.id}
              task={task}
              state={state}
              open={url.pull === task.id}
              onToggle={() => toggle(task.id)}
              withChecks={index < CHECKED && (state === "open" || state === "draft")}
            />
          );
        })}
      </ul>
    );
  };

  return (
    <Page
      title="Pull requests"
      filters={
        tasks.length > 0 && (
          <SearchInput
            label="Search pull requests"
            className="w-full sm:w-60"
            value={url.q ?? ""}
            onChange={(event) => change({ q: event.target.value })}
          />
        )
      }
    >
      <div className="-mx-4">
        <Tabs
          label="State"
          value={tab.id}
          onChange={(id) => change({ state: id === "open" ? undefined : id })}
          tabs={TABS.map((each) => {
            const shown = inTab(each.states);
            return { id: each.id, label: each.label, count: query.data && shown.length, content: content(shown) };
          })}
        />
      </div>
    </Page>
  );
}
