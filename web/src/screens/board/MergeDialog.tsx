import { useState } from "react";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Checkbox, Field, FormError, Select } from "@/ui/field";
import { done } from "@/ui/toast";
import { type MergeMethod, mergePull } from "./actions";
import { nameOf, type Task } from "./model";

const METHODS: Record<MergeMethod, string> = {
  merge: "Merge commit",
  squash: "Squash: one commit",
  rebase: "Rebase: the commits one by one",
};

/** Merge the pull request of a task. With `onLeave` the task can also be done without that. */
export function MergeDialog({ task, onClose, onMerged, onLeave }: {
  task: Task;
  onClose: () => void;
  onMerged: () => void;
  onLeave?: () => void;
}) {
  const [method, setMethod] = useState<MergeMethod>("merge");
  const [error, setError] = useState("");
  const [anyway, setAnyway] = useState(false);
  const [busy, setBusy] = useState(false);
  const merge = async () => {
    setBusy(true);
    setError("");
    try {
      await mergePull(task, method, anyway);
      done(`Pull request #${task.pull_request_number} was merged`);
      onMerged();
    } catch (problem) {
      setError((problem as Error).message);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Merge pull request #${task.pull_request_number}?`}
      description={`${nameOf(task)} has an open pull request into ${task.base_branch || "the base branch"}.`}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          {onLeave && <Button onClick={onLeave}>Leave it open</Button>}
          <Button look="primary" busy={busy} onClick={() => void merge()}>
            Merge
          </Button>
        </>
      }
    >
      <Field label="How">
        <Select value={method} onChange={(event) => setMethod(event.target.value as MergeMethod)} className="w-full">
          {Object.entries(METHODS).map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </Select>
      </Field>
      {error && <FormError>{error}</FormError>}
      {(anyway || /check/i.test(error)) && (
        <Checkbox label="Merge although a check runs or has failed" checked={anyway} onChange={(event) => setAnyway(event.target.checked)} />
      )}
    </Dialog>
  );
}
