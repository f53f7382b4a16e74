import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { meQuery } from "@/api/queries";
import { cx } from "@/ui/classes";
import { useChosenInSight } from "@/ui/insight";
import { Page } from "@/ui/page";
import { Appearance } from "./Appearance";
import { Configuration } from "./Configuration";
import { Github } from "./Github";
import { Keys } from "./Keys";
import { Users } from "./Users";

const EGRESS = /egress|network|dns|internet|proxy/;
const LIMITS = /^max_|_max_|limit|rate|timeout|quota|budget/;

const SECTIONS = [
  { id: "appearance", label: "Appearance and keyboard", content: <Appearance /> },
  { id: "keys", label: "API keys", content: <Keys /> },
  { id: "github", label: "GitHub", content: <Github /> },
  { id: "users", label: "Users", admin: true, content: <Users /> },
  { id: "egress", label: "Network of sandboxes", admin: true, content: <Configuration key="egress" title="Network of sandboxes" only={EGRESS} /> },
  { id: "limits", label: "Limits", admin: true, content: <Configuration key="limits" title="Limits" only={LIMITS} /> },
  { id: "all", label: "All settings", admin: true, content: <Configuration key="all" title="All settings" /> },
];

export default function Settings() {
  const { section = "appearance" } = useParams({ strict: false });
  const admin = useQuery(meQuery).data?.role === "admin";
  const sections = SECTIONS.filter((each) => admin || !each.admin);
  const chosen = sections.find((each) => each.id === section) ?? sections[0];
  const row = useChosenInSight<HTMLElement>(chosen?.id ?? "");
  return (
    <Page title="Settings">
      <div className="flex flex-col gap-4 md:flex-row">
        <nav ref={row} aria-label="Settings" className="relative flex shrink-0 gap-1 overflow-x-auto md:w-52 md:flex-col">
          {sections.map((each) => (
            <Link
              key={each.id}
              to="/settings/$section"
              params={{ section: each.id }}
              aria-current={each === chosen ? "page" : undefined}
              className={cx(
                "rounded-md px-3 py-1.5 whitespace-nowrap hover:bg-hover",
                each === chosen ? "bg-accent-soft font-medium text-accent" : "text-muted",
              )}
            >
              {each.label}
            </Link>
          ))}
        </nav>
        <div className="min-w-0 flex-1">{chosen?.content}</div>
      </div>
    </Page>
  );
}
