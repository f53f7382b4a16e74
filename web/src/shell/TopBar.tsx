import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleUser, Command, Keyboard, LogOut, Menu as MenuIcon, Monitor, Moon, Search, Sun } from "lucide-react";
import { api, data } from "@/api/client";
import { meQuery } from "@/api/queries";
import { IconButton } from "@/ui/button";
import { KeyHint } from "@/ui/kbd";
import { Menu } from "@/ui/menu";
import { ConnectionBadge } from "./ConnectionBadge";
import { QuotaMeter } from "./QuotaMeter";
import { setTheme, type Theme, useTheme } from "./theme";
import { useShell } from "./state";

const THEMES: Record<Theme, { label: string; icon: typeof Sun; next: Theme }> = {
  system: { label: "Theme: system", icon: Monitor, next: "light" },
  light: { label: "Theme: light", icon: Sun, next: "dark" },
  dark: { label: "Theme: dark", icon: Moon, next: "system" },
};

async function signOut() {
  await data(api.POST("/api/v1/auth/logout")).catch(() => undefined);
  location.assign("/app/sign-in");
}

export function TopBar() {
  const me = useQuery(meQuery).data;
  const theme = THEMES[useTheme((state) => state.theme)];
  return (
    <header className="flex h-12 shrink-0 items-center pointer-coarse:h-14 gap-2 border-b border-line bg-panel px-3">
      <IconButton label="Navigation" className="lg:hidden" onClick={() => useShell.setState({ drawer: true })}>
        <MenuIcon aria-hidden className="size-5" />
      </IconButton>
      <Link to="/" aria-label="Caisson" className="square flex items-center justify-center gap-2 font-semibold">
        <img src="/app/icon.svg" alt="" className="size-6" />
        <span className="hidden sm:inline">Caisson</span>
      </Link>
      <button
        type="button"
        onClick={() => useShell.setState({ palette: true })}
        className="ml-2 flex h-8 min-w-0 flex-1 items-center gap-2 rounded-md border border-line bg-ground px-2.5 text-muted hover:bg-hover sm:max-w-sm"
      >
        <Search aria-hidden className="size-4 shrink-0" />
        <span className="truncate">
          Search<span className="max-sm:hidden"> or run a command</span>
        </span>
        <span className="ml-auto">
          <KeyHint keys="Ctrl K" />
        </span>
      </button>
      <div className="ml-auto flex items-center gap-1.5">
        <ConnectionBadge />
        <QuotaMeter />
        <span className="max-sm:hidden">
          <IconButton label={theme.label} onClick={() => setTheme(theme.next)}>
            <theme.icon aria-hidden className="size-4" />
          </IconButton>
        </span>
        <Menu
          label="User"
          trigger={
            <IconButton label={`Signed in as ${me?.name ?? "…"}`}>
              <CircleUser aria-hidden className="size-5" />
            </IconButton>
          }
          items={[
            { label: theme.label, icon: <theme.icon aria-hidden className="size-4" />, onSelect: () => setTheme(theme.next) },
            {
              label: "Commands",
              icon: <Command aria-hidden className="size-4" />,
              onSelect: () => useShell.setState({ palette: true }),
            },
            {
              label: "Keyboard shortcuts",
              icon: <Keyboard aria-hidden className="size-4" />,
              onSelect: () => useShell.setState({ help: true }),
            },
            null,
            { label: "Sign out", icon: <LogOut aria-hidden className="size-4" />, onSelect: () => void signOut() },
          ]}
        />
      </div>
    </header>
  );
}
