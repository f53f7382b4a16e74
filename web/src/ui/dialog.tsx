import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import { type ReactNode, useId, useState } from "react";
import { Button } from "./button";
import { cx } from "./classes";
import { Field, FormError, Input } from "./field";

interface DialogProps {
  open: boolean;
  onClose: () => void;
  title: ReactNode;
  description?: ReactNode;
  children?: ReactNode;
  footer?: ReactNode;
  wide?: boolean;
}

const OVERLAY = "fixed inset-0 z-40 bg-black/45 data-[state=open]:animate-in";

function Header({ title, description, className }: Pick<DialogProps, "title" | "description"> & { className: string }) {
  return (
    <header className={cx("flex items-start gap-3", className)}>
      <div className="min-w-0 flex-1">
        <Radix.Title className="text-base font-semibold">{title}</Radix.Title>
        {description && <Radix.Description className="mt-1 text-muted">{description}</Radix.Description>}
      </div>
      <Radix.Close asChild>
        {/* Without a tip: it would have the focus, and Escape would close the tip instead of the dialog. */}
        <Button look="ghost" small aria-label="Close" title="Close" className="square !size-7 !px-0">
          <X aria-hidden className="size-4" />
        </Button>
      </Radix.Close>
    </header>
  );
}

export function Dialog({ open, onClose, title, description, children, footer, wide }: DialogProps) {
  return (
    <Radix.Root open={open} onOpenChange={(now) => !now && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className={OVERLAY} />
        <Radix.Content
          {...(description ? {} : { "aria-describedby": undefined })}
          className={cx(
            "fixed z-50 flex max-h-[90dvh] flex-col rounded-xl border border-line bg-panel shadow-float",
            "left-1/2 top-1/2 w-[calc(100vw-2rem)] -translate-x-1/2 -translate-y-1/2",
            wide ? "max-w-3xl" : "max-w-lg",
          )}
        >
          <Header title={title} description={description} className="px-5 pt-4 pb-2" />
          <div className="min-h-0 flex-1 overflow-y-auto px-5 py-2">{children}</div>
          {footer && <footer className="flex flex-wrap justify-end gap-2 px-5 pt-2 pb-4">{footer}</footer>}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/** A dialog that is one form. Ctrl+Enter submits it, too. */
export function FormDialog({ action, busy, error, onSubmit, children, onClose, ...rest }: Omit<DialogProps, "footer" | "open"> & {
  action: string;
  busy: boolean;
  error?: Error | null;
  onSubmit: (fields: FormData) => void;
}) {
  const form = useId();
  return (
    <Dialog
      {...rest}
      open
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form={form} look="primary" busy={busy}>
            {action}
          </Button>
        </>
      }
    >
      <form
        id={form}
        onSubmit={(event) => {
          event.preventDefault();
          if (!busy) onSubmit(new FormData(event.currentTarget));
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
        }}
      >
        {children}
        {error && <FormError>{error.message}</FormError>}
      </form>
    </Dialog>
  );
}

/** A panel from the right; from the bottom on a small screen. */
export function Sheet({ open, onClose, title, description, children, footer }: DialogProps) {
  return (
    <Radix.Root open={open} onOpenChange={(now) => !now && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className={OVERLAY} />
        <Radix.Content
          {...(description ? {} : { "aria-describedby": undefined })}
          className={cx(
            "fixed z-50 flex flex-col border-line bg-panel shadow-float",
            "inset-x-0 bottom-0 max-h-[88dvh] rounded-t-xl border-t",
            "sm:inset-y-0 sm:right-0 sm:left-auto sm:max-h-none sm:w-[min(36rem,92vw)] sm:rounded-none sm:border-t-0 sm:border-l",
          )}
        >
          <Header title={title} description={description} className="border-b border-line px-5 py-3" />
          <div className="min-h-0 flex-1 overflow-y-auto px-5 py-4">{children}</div>
          {footer && <footer className="flex flex-wrap gap-2 border-t border-line px-5 py-3">{footer}</footer>}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/** Asks before something is lost. `type` = a text that has to be typed first. */
export function ConfirmDialog({ open, onClose, onConfirm, title, lost, action, type, busy }: {
  open: boolean;
  onClose: () => void;
  onConfirm: () => void;
  title: string;
  /** What will be lost, in a sentence. */
  lost: ReactNode;
  action: string;
  type?: string;
  busy?: boolean;
}) {
  const [typed, setTyped] = useState("");
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={title}
      description={lost}
      footer={
        <>
          <Button onClick={onClose}>Keep</Button>
          <Button look="danger" busy={busy} disabled={type !== undefined && typed !== type} onClick={onConfirm}>
            {action}
          </Button>
        </>
      }
    >
      {type !== undefined && (
        <Field label={`Type ${type} to go on`}>
          <Input value={typed} onChange={(event) => setTyped(event.target.value)} autoFocus />
        </Field>
      )}
    </Dialog>
  );
}
