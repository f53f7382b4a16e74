// What a program in a sandbox serves, in a frame. Fills the height of its parent.
import { BuildPreview } from "./preview/BuildPreview";
import { SandboxPreview } from "./preview/SandboxPreview";

export type PreviewSource = { kind: "build"; id: string } | { kind: "sandbox"; id: string };

export function Preview({ source }: { source: PreviewSource }) {
  return source.kind === "build" ? <BuildPreview id={source.id} /> : <SandboxPreview key={source.id} id={source.id} />;
}
