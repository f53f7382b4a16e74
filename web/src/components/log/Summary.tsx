import { useEffect, useRef, useState } from "react";
import { plural } from "@/ui/format";

const EVERY_MS = 10_000;

/** For screen readers: how much came, at most every ten seconds. A fast log read aloud would be of no use. */
export function Summary({ count }: { count: number }) {
  const [text, setText] = useState("");
  const latest = useRef(count);
  latest.current = count;
  useEffect(() => {
    let told = latest.current;
    const timer = setInterval(() => {
      const fresh = latest.current - told;
      told = latest.current;
      setText(fresh > 0 ? `${plural(fresh, "new line")}, ${latest.current} in all` : "");
    }, EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <p aria-live="polite" className="sr-only">
      {text}
    </p>
  );
}
