import { type RefObject, type UIEvent, type WheelEvent, useLayoutEffect, useRef, useState } from "react";

const NEAR_PX = 30;

/** Keeps the end in sight until the user scrolls up, and again once they are back at the end. `hasEnd`: false while
 * the end of the log is not loaded. */
export function useFollow(box: RefObject<HTMLElement | null>, size: number, initial: boolean, hasEnd = true) {
  const [wanted, setFollow] = useState(initial);
  const follow = wanted && hasEnd;
  const top = useRef(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new size is the reason to scroll
  useLayoutEffect(() => {
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [follow, size, box]);
  const onScroll = (event: UIEvent<HTMLElement>) => {
    const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
    if (scrollHeight - scrollTop - clientHeight < NEAR_PX) setFollow(hasEnd);
    else if (scrollTop < top.current) setFollow(false);
    top.current = scrollTop;
  };
  // Before the scroll itself: lines that come at the same time must not pull the view back.
  const onWheel = (event: WheelEvent) => {
    if (event.deltaY < 0) setFollow(false);
  };
  return { follow, setFollow, onScroll, onWheel };
}
