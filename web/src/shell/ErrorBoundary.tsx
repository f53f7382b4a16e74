import { Component, type ReactNode } from "react";
import { ErrorState } from "@/ui/states";

interface Props {
  /** Another one when another screen is shown: what broke before does not matter there. */
  place?: string;
  children: ReactNode;
}

interface State {
  error: Error | null;
  place?: string;
}

/** Keeps the shell alive when a screen breaks. */
export class ErrorBoundary extends Component<Props, State> {
  override state: State = { error: null, place: this.props.place };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  // Not by a key: what did not break keeps its state when the address changes.
  static getDerivedStateFromProps(props: Props, state: State) {
    return props.place === state.place ? null : { error: null, place: props.place };
  }

  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <ErrorState
        title={this.props.place === undefined ? "This part broke" : "This screen broke"}
        screen={this.props.place !== undefined}
        error={this.state.error}
        onRetry={() => this.setState({ error: null })}
      />
    );
  }
}
