import { Link } from "@tanstack/react-router";
import { Compass } from "lucide-react";
import { buttonClass } from "@/ui/button";
import { useTitle } from "@/ui/page";
import { EmptyState } from "@/ui/states";

export function NotFound() {
  useTitle("Not found");
  return (
    <>
      <h1 className="sr-only">Not found</h1>
      <EmptyState
        icon={Compass}
        title="There is nothing at this address"
        action={
          <Link to="/" className={buttonClass("primary")}>
            Go home
          </Link>
        }
      />
    </>
  );
}
