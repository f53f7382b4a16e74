import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Hammer } from "lucide-react";
import { useState } from "react";
import { api, data, type Schemas } from "@/api/client";
import { keys } from "@/api/queries";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { plural } from "@/ui/format";
import { failed } from "@/ui/toast";

/** Builds the files of a version again, as a new version; asks first, because it uses up a build. */
export function RebuildButton({ build, label = "Rebuild", small }: { build: Schemas["Build"]; label?: string; small?: boolean }) {
  const [open, setOpen] = useState(false);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const version = build.build_version;
  const rebuild = useMutation({
    mutationFn: () =>
      data(api.POST("/api/v1/builds/{id}/rollback", { params: { path: { id: build.id } }, body: { version: version ?? "" } })),
    onSuccess: (made) => {
      setOpen(false);
      void queries.invalidateQueries({ queryKey: keys.builds });
      void navigate({ to: "/builds/$buildId", params: { buildId: made.id }, search: {} });
    },
    onError: (error) => failed(`${version} was not built again`, error),
  });
  if (!version) return null;
  const left = build.usage?.jobs_remaining;
  return (
    <>
      <Button small={small} look={small ? "plain" : "primary"} icon={<Hammer aria-hidden className="size-4" />} onClick={() => setOpen(true)}>
        {label}
      </Button>
      <Dialog
        open={open}
        onClose={() => setOpen(false)}
        title={`${label} ${version} of ${build.project}`}
        description={`A new version with the same files. This uses 1 build${left == null ? "" : `; ${plural(left, "build")} left today`}.`}
        footer={
          <>
            <Button onClick={() => setOpen(false)}>Cancel</Button>
            <Button look="primary" busy={rebuild.isPending} onClick={() => rebuild.mutate()}>
              Build it
            </Button>
          </>
        }
      />
    </>
  );
}
