import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { approvalsQuery, meQuery } from "@/api/queries";
import { cx } from "@/ui/classes";
import { PLACES, type Place } from "./navigation";

const GROUPS: Place["group"][] = ["work", "operate", "manage"];

/** The left navigation. Narrow: pictures only. On a phone it is a drawer (`onNavigate` closes it). */
export function Rail({ narrow, onNavigate }: { narrow?: boolean; onNavigate?: () => void }) {
  const me = useQuery(meQuery).data;
  const waiting = useQuery(approvalsQuery).data?.filter((each) => each.state === "pending").length ?? 0;
  return (
    <nav aria-label="Main" className="flex flex-col gap-4 p-2">
      {GROUPS.map((group) => (
        <ul key={group} className="flex flex-col gap-0.5">
          {PLACES.filter((place) => place.group === group && (!place.admin || me?.role === "admin")).map((place) => (
            <li key={place.to}>
              <Link
                to={place.to}
                onClick={onNavigate}
                activeOptions={{ exact: place.to === "/" }}
                aria-label={narrow ? place.label : undefined}
                title={narrow ? place.label : undefined}
                className={cx(
                  "flex h-9 items-center gap-2.5 rounded-md px-2.5 text-muted hover:bg-hover hover:text-text",
                  "data-[status=active]:bg-accent-soft data-[status=active]:font-medium data-[status=active]:text-accent",
                  narrow && "justify-center px-0",
                )}
              >
                <place.icon aria-hidden className="size-4.5 shrink-0" />
                {!narrow && <span className="flex-1">{place.label}</span>}
                {place.to === "/approvals" && waiting > 0 && (
                  <span className="rounded-full bg-info-soft px-1.5 text-xs font-semibold text-info">
                    {waiting}
                    <span className="sr-only"> waiting</span>
                  </span>
                )}
              </Link>
            </li>
          ))}
        </ul>
      ))}
    </nav>
  );
}
