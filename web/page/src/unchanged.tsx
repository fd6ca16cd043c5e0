// Components that are drawn again only when what they show has changed.

import { Component, type ComponentChild, type FunctionComponent } from "preact";

/** Draws again only when one of the given values differs. */
export function drawnWhenChanged<Props extends object>(
  draw: FunctionComponent<Props>,
  shown: (props: Props) => unknown[],
): new (props: Props) => Component<Props> {
  return class extends Component<Props> {
    override shouldComponentUpdate(next: Props): boolean {
      const now = shown(next);
      return shown(this.props as Props).some((value, at) => !Object.is(value, now[at]));
    }
    override render(): ComponentChild {
      const Draw = draw;
      return <Draw {...(this.props as Props)} />;
    }
  };
}
