// The places of the page: the rail, the palette and the `g …` shortcuts are made from this list.
import {
  Activity,
  Bot,
  Box,
  CircleDollarSign,
  Cog,
  GitPullRequest,
  Hammer,
  House,
  KanbanSquare,
  Layers,
  type LucideIcon,
  ScrollText,
  ShieldQuestion,
  Workflow,
} from "lucide-react";

export interface Place {
  to: string;
  label: string;
  icon: LucideIcon;
  key?: string;
  /** Only for administrators. */
  admin?: boolean;
  group: "work" | "operate" | "manage";
}

export const PLACES: Place[] = [
  { to: "/", label: "Home", icon: House, key: "h", group: "work" },
  { to: "/board", label: "Board", icon: KanbanSquare, key: "b", group: "work" },
  { to: "/work", label: "Agent work", icon: Bot, key: "a", group: "work" },
  { to: "/approvals", label: "Approvals", icon: ShieldQuestion, key: "i", group: "work" },
  { to: "/pulls", label: "Pull requests", icon: GitPullRequest, key: "p", group: "work" },
  { to: "/builds", label: "Builds", icon: Hammer, key: "u", group: "work" },
  { to: "/sandboxes", label: "Sandboxes", icon: Box, key: "s", group: "operate" },
  { to: "/runs", label: "Runs", icon: Workflow, key: "r", group: "operate" },
  { to: "/templates", label: "Templates", icon: Layers, key: "t", group: "operate" },
  { to: "/costs", label: "Costs", icon: CircleDollarSign, key: "c", group: "manage" },
  { to: "/health", label: "Health", icon: Activity, key: "l", group: "manage" },
  { to: "/audit", label: "Audit log", icon: ScrollText, admin: true, group: "manage" },
  { to: "/settings", label: "Settings", icon: Cog, key: "e", group: "manage" },
];
