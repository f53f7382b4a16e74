import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, data, type Schemas } from "@/api/client";
import { keys } from "@/api/queries";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { failed } from "@/ui/toast";
import { useParam } from "@/ui/url";
import { BuildCard } from "./BuildCard";
import { EndingNotice } from "./EndingNotice";
import { answers, previewState } from "./machine";
import { PreviewFrame } from "./PreviewFrame";

export const buildQuery = (id: string) => ({
  queryKey: keys.build(id),
  queryFn: () => data(api.GET("/api/v1/builds/{id}", { params: { path: { id } } })),
});

const checkQuery = (id: string) => ({
  queryKey: [...keys.build(id), "preview-check"],
  queryFn: () => data(api.GET("/api/v1/builds/{id}/preview-check", { params: { path: { id } } })),
});

export function BuildPreview({ id }: { id: string }) {
  const build = useQuery(buildQuery(id));
  if (build.isPending) return <SkeletonRows />;
  if (build.error) return <ErrorState error={build.error} onRetry={() => void build.refetch()} />;
  return <Shown key={id} build={build.data} />;
}

function Shown({ build }: { build: Schemas["Build"] }) {
  const queries = useQueryClient();
  const params = { path: { id: build.id } };
  const check = useQuery({ ...checkQuery(build.id), enabled: answers(build.preview_state), retry: false });
  const resume = useMutation({
    mutationFn: () => data(api.POST("/api/v1/builds/{id}/resume", { params })),
    onSettled: () => queries.invalidateQueries({ queryKey: keys.build(build.id) }),
  });
  const keep = useMutation({
    mutationFn: () => data(api.POST("/api/v1/builds/{id}/extend", { params })),
    onError: (error) => failed("The preview is not shown longer", error),
    onSettled: () => queries.invalidateQueries({ queryKey: keys.build(build.id) }),
  });
  const [service = "preview", setService] = useParam("service");
  const state = previewState({
    server: build.preview_state,
    check: { pending: check.isPending, failed: check.isError, state: check.data?.state },
    resume: { pending: resume.isPending, error: resume.error },
  });
  useViewed(build, state === "active");
  const again = () => {
    resume.reset();
    void queries.invalidateQueries({ queryKey: keys.build(build.id) });
  };
  const services = Object.entries(build.services ?? {}).map(([label, { url }]) => ({ label, url }));
  const chosen =
    services.find((each) => each.label === service) ?? (build.preview_url ? { label: "preview", url: build.preview_url } : undefined);
  return (
    <PreviewFrame
      services={services}
      service={chosen}
      onService={services.length > 1 ? setService : undefined}
      notice={state === "active" && <EndingNotice endsAt={build.sandbox_expires_at} onKeep={() => keep.mutate()} />}
    >
      {state !== "active" && (
        <BuildCard build={build} state={state} reason={check.data?.reason} onResume={() => resume.mutate()} onRetry={again} checking={check.isFetching} />
      )}
    </PreviewFrame>
  );
}

/** A version that nobody looked at asks for a review; showing it is looking. */
function useViewed(build: Schemas["Build"], active: boolean) {
  const unseen = active && build.viewed_at === null;
  useEffect(() => {
    if (unseen) void api.POST("/api/v1/builds/{id}/preview-viewed", { params: { path: { id: build.id } } });
  }, [unseen, build.id]);
}
