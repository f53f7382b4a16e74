import { Columns3, List, SlidersHorizontal, X } from "lucide-react";
import { type Ref, useState } from "react";
import { Button, IconButton } from "@/ui/button";
import { cx } from "@/ui/classes";
import { Checkbox, SearchInput, Select } from "@/ui/field";
import { capitalized, repoName } from "@/ui/format";
import type { Url } from "@/ui/url";
import { type Agent, CARD_STATES, type Filter, FILTERS, isFiltered, PRIORITIES } from "./model";

/** The filters, the layout and what else decides what is shown. All of it is in the address. */
export function Toolbar({ url, change, agents, repos, hidden, failures, search }: {
  url: Url & Filter;
  change: (patch: Url) => void;
  agents: Agent[];
  repos: string[];
  /** So many tasks are in columns that are not shown, `failures` of them failed. */
  hidden: number;
  failures: number;
  search: Ref<HTMLInputElement>;
}) {
  const [open, setOpen] = useState(false);
  const list = url.layout === "list";
  const filtered = isFiltered(url);
  const select = (name: keyof Filter, label: string, options: { value: string; label: string }[]) => (
    <Select aria-label={label} value={url[name] ?? ""} onChange={(event) => change({ [name]: event.target.value })}>
      <option value="">Any {label.toLowerCase()}</option>
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </Select>
  );
  return (
    <div role="search" aria-label="Tasks" className="flex flex-wrap items-center gap-2 px-4 pb-3">
      <SearchInput
        ref={search}
        label="Search tasks"
        className="min-w-36 flex-1 sm:max-w-52"
        value={url.q ?? ""}
        onChange={(event) => change({ q: event.target.value })}
      />
      <Button
        className="md:hidden"
        aria-expanded={open}
        icon={<SlidersHorizontal aria-hidden className="size-4" />}
        onClick={() => setOpen(!open)}
      >
        Filters
      </Button>
      <div className={cx("flex-wrap items-center gap-2 md:contents", open ? "flex" : "hidden")}>
        {select("agent", "Agent", [
          { value: "none", label: "No agent" },
          ...agents.map((agent) => ({ value: agent.id, label: agent.name })),
        ])}
        {select("repo", "Repository", repos.map((url) => ({ value: url, label: repoName(url) })))}
        {select("priority", "Priority", PRIORITIES.map((each) => ({ value: each, label: capitalized(each) })))}
        {select("state", "State", CARD_STATES.map((each) => ({ value: each.id, label: each.label })))}
        {filtered && (
          <Button
            look="ghost"
            icon={<X aria-hidden className="size-4" />}
            onClick={() => change(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}
          >
            Clear
          </Button>
        )}
      </div>
      <div className="ml-auto flex flex-wrap items-center justify-end gap-2">
        <Checkbox
          checked={url.all === "1"}
          onChange={(event) => change({ all: event.target.checked ? "1" : undefined })}
          label={
            <span className="text-[13px] whitespace-nowrap text-muted max-sm:text-xs">
              All columns
              {failures > 0 ? <span className="text-bad"> · {failures} failed</span> : hidden > 0 && ` · ${hidden} more`}
            </span>
          }
        />
        {list && (
          <Select
            className="shrink-0"
            aria-label="Group by"
            value={url.group ?? "status"}
            onChange={(event) => change({ group: event.target.value === "status" ? undefined : event.target.value })}
          >
            <option value="status">By status</option>
            <option value="agent">By agent</option>
            <option value="repo">By repository</option>
            <option value="priority">By priority</option>
          </Select>
        )}
        <div role="group" aria-label="Layout" className="flex rounded-md border border-line bg-panel">
          <IconButton label="Board" aria-pressed={!list} className={list ? undefined : "text-accent"} onClick={() => change({ layout: undefined })}>
            <Columns3 aria-hidden className="size-4" />
          </IconButton>
          <IconButton label="List" aria-pressed={list} className={list ? "text-accent" : undefined} onClick={() => change({ layout: "list" })}>
            <List aria-hidden className="size-4" />
          </IconButton>
        </div>
      </div>
    </div>
  );
}
