import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { api, data } from "@/api/client";
import { DiffView } from "@/components/Changes";
import { joinPatches } from "@/components/diff/patch";
import { Select } from "@/ui/field";
import { useParam } from "@/ui/url";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { type Build, buildsQuery, diffQuery } from "./queries";

/** What is different from another version. */
export default function Compare({ build }: { build: Build }) {
  const [against, setAgainst] = useParam("against");
  const diff = useQuery(diffQuery(build.id, against));
  const others = (useQuery(buildsQuery({ project: build.project })).data?.builds ?? []).filter((each) => each.build_version && each.id !== build.id);
  const patch = useMemo(() => joinPatches(diff.data ?? []), [diff.data]);
  const read = useCallback(
    async (path: string) => (await data(api.GET("/api/v1/builds/{id}/files", { params: { path: { id: build.id } } }))).files[path] ?? "",
    [build.id],
  );
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex shrink-0 items-center gap-2 border-b border-line px-3 py-1.5 text-[13px] text-muted">
        <label htmlFor="against">{build.build_version ?? "This build"} compared with</label>
        <Select id="against" value={against ?? ""} onChange={(event) => setAgainst(event.target.value || undefined)}>
          <option value="">the version before</option>
          {others.map((each) => (
            <option key={each.id} value={each.id}>
              {each.build_version}
            </option>
          ))}
        </Select>
      </div>
      <div className="min-h-0 flex-1">
        {diff.isPending ? (
          <SkeletonRows />
        ) : diff.error ? (
          <ErrorState error={diff.error} onRetry={() => void diff.refetch()} />
        ) : (
          <DiffView patch={patch} label={`Changes of ${build.build_version ?? build.project}`} read={read} />
        )}
      </div>
    </div>
  );
}
