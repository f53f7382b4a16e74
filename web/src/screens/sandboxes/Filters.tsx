import { X } from "lucide-react";
import type { RefObject } from "react";
import { Button } from "@/ui/button";
import { Chip } from "@/ui/chip";
import { SearchInput, Select } from "@/ui/field";
import { type BoxFilter, isFiltered } from "./boxes";

const STATES = { running: "Running", paused: "Paused", ended: "Ended" };
const OWNERS = { task: "Tasks", session: "Sessions", build: "Builds", user: "By hand" };

type Change = (change: Record<string, string | undefined>) => void;

function Chips({ label, all, on, name, onChange }: {
  label: string;
  all: Record<string, string>;
  on: string[];
  name: string;
  onChange: Change;
}) {
  const toggle = (value: string, chosen: boolean) => {
    const next = chosen ? [...on, value] : on.filter((each) => each !== value);
    onChange({ [name]: next.join(",") || undefined });
  };
  return (
    <div role="group" aria-label={label} className="flex flex-wrap gap-1">
      {Object.entries(all).map(([value, text]) => (
        <Chip key={value} on={on.includes(value)} onChange={(chosen) => toggle(value, chosen)}>
          {text}
        </Chip>
      ))}
    </div>
  );
}

/** The filters of the list. They live in the URL. */
export function Filters({ filter, admin, templates, onChange, input }: {
  filter: BoxFilter;
  admin: boolean;
  templates: string[];
  onChange: Change;
  input: RefObject<HTMLInputElement | null>;
}) {
  return (
    <search className="mb-3 flex flex-wrap items-center gap-x-3 gap-y-2">
      <SearchInput
        ref={input}
        label="Find a sandbox"
        placeholder="Id, repository, metadata"
        className="w-full sm:w-64"
        value={filter.q}
        onChange={(event) => onChange({ q: event.target.value || undefined })}
      />
      <Chips label="State" all={STATES} on={filter.states} name="state" onChange={onChange} />
      <Chips label="Owner" all={OWNERS} on={filter.owners} name="owner" onChange={onChange} />
      {admin && (
        <Chip on={filter.everybody} onChange={(on) => onChange({ scope: on ? "all" : undefined })}>
          All users
        </Chip>
      )}
      {templates.length > 1 && (
        <Select
          aria-label="Template"
          value={filter.template}
          onChange={(event) => onChange({ template: event.target.value || undefined })}
        >
          <option value="">Any template</option>
          {templates.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </Select>
      )}
      {isFiltered(filter) && (
        <Button
          small
          look="ghost"
          icon={<X aria-hidden className="size-3.5" />}
          onClick={() => onChange({ q: undefined, state: undefined, owner: undefined, template: undefined, scope: undefined })}
        >
          Clear filters
        </Button>
      )}
    </search>
  );
}
