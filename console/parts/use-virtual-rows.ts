import {
  Virtualizer,
  elementScroll,
  observeElementOffset,
  observeElementRect,
  type VirtualItem,
  type VirtualizerOptions,
} from '@tanstack/virtual-core';
import { useLayoutEffect, useReducer, useState } from 'preact/hooks';

/**
 * Chooses the visible rows of a long list. Thousands of rows cost as little as dozens.
 * @param list.rowHeight pixels, the same for every row
 * @returns the position of each row, the height of all, and the width of the list
 */
export function useVirtualRows(list: {
  count: number;
  rowHeight: number;
  keyOf: (index: number) => string;
  scroller: () => HTMLElement | null;
}): { rows: VirtualItem[]; height: number; width: number; scrollTo: (index: number) => void } {
  const [, redraw] = useReducer<number, void>((turn) => turn + 1, 0);
  const options: VirtualizerOptions<HTMLElement, HTMLElement> = {
    count: list.count,
    getScrollElement: list.scroller,
    estimateSize: () => list.rowHeight,
    getItemKey: list.keyOf,
    overscan: 6,
    scrollToFn: elementScroll,
    observeElementRect: (instance, notice) =>
      observeElementRect(instance, (rect) => {
        notice(rect);
        redraw();
      }),
    observeElementOffset,
    onChange: () => redraw(),
  };
  const [virtualizer] = useState(() => new Virtualizer(options));
  virtualizer.setOptions(options);
  useLayoutEffect(() => virtualizer._didMount(), [virtualizer]);
  useLayoutEffect(() => virtualizer._willUpdate());
  return {
    rows: virtualizer.getVirtualItems(),
    height: virtualizer.getTotalSize(),
    width: virtualizer.scrollRect?.width ?? 0,
    scrollTo: (index) => virtualizer.scrollToIndex(index),
  };
}
