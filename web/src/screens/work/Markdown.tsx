import "./markdown.css";
import ReactMarkdown from "react-markdown";
import { safeLink } from "@/ui/format";

/** Text of an agent. HTML in it stays text; links lead out of the page, and only to http and https. */
export default function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown min-w-0">
      <ReactMarkdown
        skipHtml
        components={{
          a: ({ href, children }) => {
            const link = safeLink(href ?? "");
            return link ? (
              <a href={link} target="_blank" rel="noreferrer">
                {children}
              </a>
            ) : (
              <span>{children}</span>
            );
          },
          // A picture would tell its server who reads.
          img: ({ alt }) => <span>{alt}</span>,
          // Headings of a message are none of the page.
          h1: ({ children }) => <p className="font-semibold">{children}</p>,
          h2: ({ children }) => <p className="font-semibold">{children}</p>,
          h3: ({ children }) => <p className="font-semibold">{children}</p>,
          h4: ({ children }) => <p className="font-semibold">{children}</p>,
          pre: ({ children }) => (
            // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable
            <pre tabIndex={0}>{children}</pre>
          ),
        }}
      >
        {text}
      </ReactMarkdown>
    </div>
  );
}
