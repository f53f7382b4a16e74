import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { FilterX, Hammer, Plus } from "lucide-react";
import { Suspense, useRef, useState } from "react";
import { meQuery } from "@/api/queries";
import { useRows } from "@/shell/rows";
import { useShortcuts } from "@/shell/shortcuts";
import { Button } from "@/ui/button";
import { Checkbox, SearchInput, Select } from "@/ui/field";
import { plural } from "@/ui/format";
import { lazily } from "@/ui/lazily";
import { Page } from "@/ui/page";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { ProjectCard } from "./ProjectCard";
import { type Build, type BuildFilter, buildsQuery } from "./queries";

const CreateBuildDialog = lazily(() => import("./CreateBuildDialog"));

const STATES = [
  { value: "ready", label: "Ready" },
  { value: "failed", label: "Failed" },
  { value: "starting,scaffold,code,deps,checks", label: "Under way" },
  { value: "queued,scheduled", label: "Waiting" },
];

const matches = (build: Build, text: string) =>
  `${build.project} ${build.goal} ${build.build_version ?? ""} ${build.runner}`.toLowerCase().includes(text);

export default function Builds() {
  const filter = useSearch({ strict: false }) as BuildFilter;
  const navigate = useNavigate();
  const admin = useQuery(meQuery).data?.role === "admin";
  const [creating, setCreating] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  const builds = useQuery({ ...buildsQuery(filter), placeholderData: (before) => before });
  const change = (next: BuildFilter) =>
    void navigate({ to: "/builds", search: { ...filter, ...next } as Record<string, string | undefined>, replace: true });
  useShortcuts([{ keys: "/", label: "Find a build", scope: "Builds", run: () => search.current?.focus() }]);
  useRows("Builds", "build");
  const text = (filter.q ?? "").trim().toLowerCase();
  const found = (builds.data?.builds ?? []).filter((build) => !text || matches(build, text));
  const projects = [...Map.groupBy(found, (build) => build.project)];
  const filtered = Boolean(filter.q || filter.project || filter.state || filter.all);
  const newBuild = (
    <Button look="primary" icon={<Plus aria-hidden className="size-4" />} onClick={() => setCreating(true)}>
      New build
    </Button>
  );
  return (
    <Page
      title="Builds"
      filters={
        <>
          <SearchInput
            ref={search}
            label="Find a build"
            className="max-sm:basis-full sm:w-44"
            value={filter.q ?? ""}
            onChange={(event) => change({ q: event.target.value || undefined })}
          />
          <Select aria-label="State" value={filter.state ?? ""} onChange={(event) => change({ state: event.target.value || undefined })}>
            <option value="">Any state</option>
            {STATES.map(({ value, label }) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </Select>
          {admin && (
            <Checkbox label="All users" checked={Boolean(filter.all)} onChange={(event) => change({ all: event.target.checked ? "1" : undefined })} />
          )}
          {filter.project && (
            <Button small onClick={() => change({ project: undefined })} icon={<FilterX aria-hidden className="size-4" />}>
              Only {filter.project}
            </Button>
          )}
        </>
      }
      actions={newBuild}
    >
      {builds.isPending ? (
        <SkeletonRows />
      ) : builds.error ? (
        <ErrorState error={builds.error} onRetry={() => void builds.refetch()} />
      ) : projects.length === 0 && filtered ? (
        <EmptyState
          icon={FilterX}
          title="No build matches"
          action={<Button onClick={() => void navigate({ to: "/builds", search: {} })}>Clear the filters</Button>}
        />
      ) : projects.length === 0 ? (
        <EmptyState
          icon={Hammer}
          title="Nothing was built yet"
          action={newBuild}
        >
          A build makes a running page out of files, an agent's work or a model's answer.
        </EmptyState>
      ) : (
        <div className="flex flex-col gap-4">
          {projects.map(([project, all]) => (
            <ProjectCard key={project} project={project} builds={all} folded={!filtered} onProject={() => change({ project })} />
          ))}
          <p className="text-muted">
            {plural(found.length, "build")} in {plural(projects.length, "project")}
            {builds.data.total > builds.data.builds.length && `, the newest of ${builds.data.total}`}
          </p>
        </div>
      )}
      <Suspense>{creating && <CreateBuildDialog onClose={() => setCreating(false)} />}</Suspense>
    </Page>
  );
}
