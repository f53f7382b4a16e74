import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useState } from "react";
import { type Schemas, api, data } from "@/api/client";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { FormDialog } from "@/ui/dialog";
import { Field, Input, Select } from "@/ui/field";
import { capitalized } from "@/ui/format";
import { Card } from "@/ui/page";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { Ago } from "@/ui/time";
import { done, failed } from "@/ui/toast";

type User = Schemas["User"];
type Role = User["role"];
const QUERY = ["users"];
const BUILT_IN = "The first user stays an administrator.";
const ROLES: Role[] = ["viewer", "member", "admin"];

function NewUser({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const make = useMutation({
    mutationFn: (body: Schemas["NewUser"]) => data(api.POST("/api/v1/users", { body })),
    onSuccess: async (user) => {
      await queries.invalidateQueries({ queryKey: QUERY });
      done(`${user.name} can sign in`);
      onClose();
    },
  });
  return (
    <FormDialog
      onClose={onClose}
      title="New user"
      action="Create"
      busy={make.isPending}
      error={make.error}
      onSubmit={(fields) => make.mutate(Object.fromEntries(fields) as Schemas["NewUser"])}
    >
      <Field label="Name">
        <Input name="name" required maxLength={64} autoFocus autoComplete="off" />
      </Field>
      <Field label="Role" hint="Viewers read, members work, admins manage users and settings too.">
        <Select name="role" defaultValue="member" className="w-full">
          {ROLES.map((role) => (
            <option key={role} value={role}>
              {capitalized(role)}
            </option>
          ))}
        </Select>
      </Field>
      <Field label="Password" hint="At least 10 characters. The user can change it.">
        <Input name="password" type="password" required minLength={10} autoComplete="new-password" />
      </Field>
    </FormDialog>
  );
}

export function Users() {
  const [making, setMaking] = useState(false);
  const queries = useQueryClient();
  const list = useQuery({ queryKey: QUERY, queryFn: async () => (await data(api.GET("/api/v1/users"))).users });
  const change = useMutation({
    mutationFn: ({ user, body }: { user: User; body: Partial<Schemas["UserChange"]> }) =>
      data(api.PATCH("/api/v1/users/{id}", { params: { path: { id: user.id } }, body: body as Schemas["UserChange"] })),
    onError: (error) => failed("The user could not be changed", error),
    onSettled: () => queries.invalidateQueries({ queryKey: QUERY }),
  });
  return (
    <Card
      title="Users"
      actions={
        <Button small look="primary" icon={<Plus aria-hidden className="size-4" />} onClick={() => setMaking(true)}>
          New user
        </Button>
      }
    >
      {list.isPending ? (
        <SkeletonRows rows={3} />
      ) : list.isError ? (
        <ErrorState error={list.error} onRetry={() => void list.refetch()} />
      ) : (
        <ul className="divide-y divide-line">
          {list.data.map((user) => (
            <li key={user.id} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2">
              <span className="min-w-0 flex-1 truncate font-medium">{user.name}</span>
              {user.disabled_at && <Badge tone="warn">Disabled</Badge>}
              <span className="text-[13px] text-muted max-sm:hidden">
                created <Ago time={user.created_at} />
              </span>
              <Select
                aria-label={`Role of ${user.name}`}
                value={user.role}
                disabled={user.id === "admin"}
                title={user.id === "admin" ? BUILT_IN : undefined}
                onChange={(event) => change.mutate({ user, body: { role: event.target.value as Role } })}
              >
                {ROLES.map((role) => (
                  <option key={role} value={role}>
              {capitalized(role)}
            </option>
                ))}
              </Select>
              <Button
                small
                disabled={user.id === "admin"}
                title={user.id === "admin" ? BUILT_IN : undefined}
                aria-label={`${user.disabled_at ? "Enable" : "Disable"} ${user.name}`}
                onClick={() => change.mutate({ user, body: { disabled: !user.disabled_at } })}
              >
                {user.disabled_at ? "Enable" : "Disable"}
              </Button>
            </li>
          ))}
        </ul>
      )}
      {making && <NewUser onClose={() => setMaking(false)} />}
    </Card>
  );
}
