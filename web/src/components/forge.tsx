import { useQuery } from "@tanstack/react-query";
import { type ComponentProps, useCallback } from "react";
import { methodsQuery } from "@/api/queries";
import { forgeLink } from "@/ui/format";

/** Which addresses of pull requests, reviews and checks may be links here. */
export function useForgeLink(): (url: string) => string | undefined {
  const forge = useQuery(methodsQuery).data?.github_url ?? "";
  return useCallback((url: string) => forgeLink(url, forge), [forge]);
}

/** A link to the forge in a new tab; only its content if the address may be none. */
export function ForgeLink({ url, children, ...rest }: ComponentProps<"a"> & { url: string }) {
  const link = useForgeLink()(url);
  return link ? (
    <a {...rest} href={link} target="_blank" rel="noreferrer">
      {children}
    </a>
  ) : (
    children
  );
}
