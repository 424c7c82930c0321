"""How an operand lies in memory: order, padding, offset; negative, zero and general strides."""

from __future__ import annotations

from dataclasses import dataclass, replace

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """Strides count elements, as everywhere in the library."""

    order: str = "row"  # "row": unit column stride; "col": unit row stride
    pad: int = 0  # elements between the end of a row (or column) and the next
    align: int = 1  # rows (or columns) start at multiples of so many elements
    step: int = 1  # elements from one element of a row (or column) to the next
    offset: int = 0  # elements from an address aligned to 256 bytes to the lowest element
    reverse_rows: bool = False  # negative row stride
    reverse_cols: bool = False
    batch_pad: int = 0  # elements between matrices of the batch
    outer_batch_pad: int = 0  # the same between those of all but the last batch dimension
    broadcast_batch: bool = False  # batch stride 0: one matrix stands for all
    broadcast_rows: bool = False  # row stride 0: one row stands for all
    broadcast_cols: bool = False
    size_one_stride: int | None = None  # the stride of dimensions of extent 1, in elements

    def with_(self, **changes: object) -> Layout:
        return replace(self, **changes)  # type: ignore[arg-type]

    def __str__(self) -> str:
        default = Layout()
        parts = [
            f"{name}={value}"
            for name, value in vars(self).items()
            if value != getattr(default, name) and name != "order"
        ]
        return "-".join([self.order, *parts])


@dataclass(frozen=True)
class Placement:
    """Strides of a shape under a layout; `first` is the element (0, .., 0) and `extent` the number
    of elements from the lowest to the highest one, both counted from the lowest."""

    strides: Shape
    first: int
    extent: int


def place(shape: Shape, layout: Layout) -> Placement:
    *batch, rows, cols = shape
    inner, outer = (cols, rows) if layout.order == "row" else (rows, cols)
    inner_stride = layout.step
    outer_stride = (max(inner, 1) - 1) * inner_stride + 1 + layout.pad
    outer_stride += -outer_stride % layout.align
    if (layout.broadcast_cols and layout.order == "row") or (
        layout.broadcast_rows and layout.order == "col"
    ):
        inner_stride, outer_stride = 0, 1 + layout.pad
    matrix_extent = (max(outer, 1) - 1) * outer_stride + (max(inner, 1) - 1) * inner_stride + 1
    row_stride, col_stride = (
        (outer_stride, inner_stride) if layout.order == "row" else (inner_stride, outer_stride)
    )
    if layout.broadcast_rows:
        row_stride = 0
    if layout.broadcast_cols:
        col_stride = 0

    batch_strides = [0] * len(batch)
    step = matrix_extent + layout.batch_pad
    step += -step % layout.align
    for dim in reversed(range(len(batch))):
        batch_strides[dim] = 0 if layout.broadcast_batch else step
        step = step * max(batch[dim], 1) + layout.outer_batch_pad

    strides = [
        *batch_strides,
        -row_stride if layout.reverse_rows else row_stride,
        -col_stride if layout.reverse_cols else col_stride,
    ]
    spans = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True) if size > 1]
    lowest = sum(span for span in spans if span < 0)
    highest = sum(span for span in spans if span > 0)
    if layout.size_one_stride is not None:
        strides = [
            layout.size_one_stride if size == 1 else stride
            for size, stride in zip(shape, strides, strict=True)
        ]
    return Placement(tuple(strides), -lowest, highest - lowest + 1)


ROW, COL = Layout(), Layout("col")
