import { setSingleKeys, useShortcutSettings } from "@/shell/shortcuts";
import { useShell } from "@/shell/state";
import { setTheme, type Theme, useTheme } from "@/shell/theme";
import { Button } from "@/ui/button";
import { Checkbox } from "@/ui/field";
import { Card } from "@/ui/page";

const THEMES: { id: Theme; label: string }[] = [
  { id: "system", label: "System" },
  { id: "light", label: "Light" },
  { id: "dark", label: "Dark" },
];

/** Choices of this browser. */
export function Appearance() {
  const theme = useTheme((state) => state.theme);
  const singleKeys = useShortcutSettings((state) => state.singleKeys);
  return (
    <div className="grid gap-4">
      <Card title="Theme">
        <fieldset className="flex flex-wrap gap-4 p-4">
          <legend className="sr-only">Theme</legend>
          {THEMES.map((each) => (
            <label key={each.id} className="inline-flex items-center gap-2">
              <input
                type="radio"
                name="theme"
                className="size-4 accent-(--accent)"
                checked={theme === each.id}
                onChange={() => setTheme(each.id)}
              />
              {each.label}
            </label>
          ))}
        </fieldset>
      </Card>
      <Card title="Keyboard">
        <div className="flex flex-wrap items-center gap-4 p-4">
          <Checkbox
            label="Single-letter shortcuts"
            checked={singleKeys}
            onChange={(event) => setSingleKeys(event.target.checked)}
          />
          <Button onClick={() => useShell.setState({ help: true })}>Show all shortcuts</Button>
        </div>
      </Card>
    </div>
  );
}
