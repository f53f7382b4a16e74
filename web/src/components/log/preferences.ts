// How logs are shown, the same in all of them.
import { create } from "zustand";
import type { Times } from "./types";

const STORAGE = "caisson-log";
const NEXT: Record<Times, Times> = { off: "relative", relative: "absolute", absolute: "off" };

interface Preferences {
  wrap: boolean;
  times: Times;
}

function stored(): Preferences {
  const [wrap, times] = (localStorage.getItem(STORAGE) ?? "").split(" ");
  return { wrap: wrap === "wrap", times: times === "relative" || times === "absolute" ? times : "off" };
}

const usePreferenceStore = create<Preferences>(stored);

function keep(change: Partial<Preferences>) {
  usePreferenceStore.setState(change);
  const { wrap, times } = usePreferenceStore.getState();
  localStorage.setItem(STORAGE, `${wrap ? "wrap" : "cut"} ${times}`);
}

export function usePreferences() {
  const { wrap, times } = usePreferenceStore();
  return { wrap, times, toggleWrap: () => keep({ wrap: !wrap }), nextTimes: () => keep({ times: NEXT[times] }) };
}
