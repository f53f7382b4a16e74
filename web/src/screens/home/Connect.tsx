import { CopyButton } from "@/ui/copy";

function Snippet({ title, text }: { title: string; text: string }) {
  return (
    <figure className="flex min-w-0 flex-col">
      <figcaption className="flex items-center justify-between text-[13px] font-medium text-muted">
        {title} <CopyButton text={text} label={`Copy: ${title}`} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
      <pre tabIndex={0} className="flex-1 overflow-x-auto rounded-md bg-sunken p-3 font-mono text-xs leading-relaxed">
        {text}
      </pre>
    </figure>
  );
}

/** Three variables, and any E2B SDK works with this server. */
export function Connect() {
  const origin = location.origin;
  return (
    <div className="grid gap-4 p-4 md:grid-cols-3">
      <Snippet
        title="Variables"
        text={`export E2B_API_KEY=e2b_…\nexport E2B_API_URL=${origin}\nexport E2B_SANDBOX_URL=${origin}`}
      />
      <Snippet
        title="Python"
        text={`from e2b import Sandbox\n\nwith Sandbox.create() as box:\n    run = box.commands.run("uname -a")\n    print(run.stdout)`}
      />
      <Snippet
        title="JavaScript"
        text={`import { Sandbox } from "e2b";\n\nconst box = await Sandbox.create();\nconst run = await box.commands.run("uname -a");\nconsole.log(run.stdout);`}
      />
    </div>
  );
}
