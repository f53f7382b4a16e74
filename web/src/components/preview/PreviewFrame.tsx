// A browser in the browser. The page inside is of another origin: what it does cannot be read, so the
// history is that of the addresses chosen here.
import { ArrowLeft, ArrowRight, ExternalLink, Monitor, MoveHorizontal, RotateCw, Smartphone, Tablet } from "lucide-react";
import { type ReactNode, useState } from "react";
import { IconButton } from "@/ui/button";
import { cx } from "@/ui/classes";
import { CopyButton } from "@/ui/copy";
import { Input, Select } from "@/ui/field";
import { safeLink } from "@/ui/format";
import { useUrl } from "@/ui/url";
import { Tip } from "@/ui/tip";
import { pathOf } from "./machine";

export interface Service {
  label: string;
  url: string;
}

const DEVICES = [
  { id: "full", label: "Full width", icon: Monitor },
  { id: "tablet", label: "Tablet, 768 px", icon: Tablet },
  { id: "phone", label: "Phone, 390 px", icon: Smartphone },
  { id: "free", label: "Free width", icon: MoveHorizontal },
] as const;
const WIDTHS: Record<string, number> = { tablet: 768, phone: 390 };

/** `children` stand in the place of the frame: the card of a state in which there is nothing to frame. */
export function PreviewFrame({ services, service, onService, children, notice, tools }: {
  services: Service[];
  /** The chosen one. */
  service?: Service;
  onService?: (label: string) => void;
  children?: ReactNode;
  notice?: ReactNode;
  tools?: ReactNode;
}) {
  const [url, change] = useUrl();
  const [trail, setTrail] = useState(() => ({ paths: [pathOf(url.page ?? "/")], at: 0 }));
  const [typed, setTyped] = useState<string | null>(null);
  const [reloads, setReloads] = useState(0);
  const device = url.device ?? "full";
  const width = Number(url.width) || 1024;
  const path = trail.paths[trail.at] ?? "/";
  const base = service ? safeLink(service.url)?.replace(/\/$/, "") : undefined;
  const address = base && base + path;
  const shown = !children && address;
  const show = (paths: string[], at: number) => {
    setTrail({ paths, at });
    change({ page: paths[at] === "/" ? undefined : paths[at] });
  };
  const visit = (next: string) => {
    setTyped(null);
    if (next !== path) show([...trail.paths.slice(0, trail.at + 1), next], trail.at + 1);
    setReloads((count) => count + 1);
  };
  const move = (by: number) => show(trail.paths, trail.at + by);
  return (
    <div className="@container flex h-full min-h-0 flex-col">
      <div className="flex shrink-0 flex-wrap items-center gap-x-1 gap-y-1 border-b border-line bg-panel px-2 py-1.5">
        <IconButton label="Back" small disabled={!shown || trail.at === 0} onClick={() => move(-1)}>
          <ArrowLeft aria-hidden className="size-4" />
        </IconButton>
        <IconButton label="Forward" small disabled={!shown || trail.at >= trail.paths.length - 1} onClick={() => move(1)}>
          <ArrowRight aria-hidden className="size-4" />
        </IconButton>
        <IconButton label="Reload" small disabled={!shown} onClick={() => setReloads(reloads + 1)}>
          <RotateCw aria-hidden className="size-4" />
        </IconButton>
        {onService && services.length > 0 && (
          <Select aria-label="Port" value={service?.label ?? ""} onChange={(event) => onService(event.target.value)} className="shrink-0">
            {services.map((each) => (
              <option key={each.label}>{each.label}</option>
            ))}
          </Select>
        )}
        <form
          className="min-w-24 flex-1"
          onSubmit={(event) => {
            event.preventDefault();
            visit(pathOf(typed ?? path));
          }}
        >
          <Input
            aria-label="Path"
            value={typed ?? path}
            disabled={!shown}
            className="font-mono text-[13px]"
            onChange={(event) => setTyped(event.target.value)}
            onBlur={() => setTyped(null)}
          />
        </form>
        {address && <CopyButton text={address} label="Copy the address" />}
        {address && (
          <Tip text="Open in a new tab">
            <a
              href={address}
              target="_blank"
              rel="noreferrer"
              aria-label="Open in a new tab"
              className="inline-grid size-7 place-items-center rounded-md text-muted hover:bg-hover hover:text-text"
            >
              <ExternalLink aria-hidden className="size-4" />
            </a>
          </Tip>
        )}
        {tools}
        <span role="group" aria-label="Width" className="ml-1 hidden items-center @md:inline-flex">
          {DEVICES.map(({ id, label, icon: Icon }) => (
            <IconButton
              key={id}
              label={label}
              small
              aria-pressed={device === id}
              className={cx(device === id && "!bg-accent-soft !text-accent")}
              onClick={() => change({ device: id === "full" ? undefined : id })}
            >
              <Icon aria-hidden className="size-4" />
            </IconButton>
          ))}
          {device === "free" && (
            <Input
              aria-label="Width in pixels"
              type="number"
              min={240}
              max={3840}
              step={10}
              value={url.width ?? "1024"}
              className="ml-1 !w-20"
              onChange={(event) => change({ width: event.target.value })}
            />
          )}
        </span>
      </div>
      {notice}
      <div className="flex min-h-0 flex-1 justify-center overflow-auto bg-sunken">
        {shown ? <Framed key={reloads} url={address} width={device === "free" ? width : (WIDTHS[device] ?? "100%")} /> : <div className="w-full">{children}</div>}
      </div>
    </div>
  );
}

/** SECURITY: `allow-same-origin` gives the page its own origin. It must never be ours. */
function Framed({ url, width }: { url: string; width: number | string }) {
  if (new URL(url).origin === location.origin)
    return <p className="m-auto p-6 text-muted">This address is the server's own. It is not shown in a frame.</p>;
  return (
    <iframe
      title="Preview"
      src={url}
      sandbox="allow-scripts allow-forms allow-same-origin allow-popups"
      referrerPolicy="no-referrer"
      className={cx("h-full shrink-0 bg-white", width !== "100%" && "border-x border-line shadow-float")}
      style={{ width }}
    />
  );
}
