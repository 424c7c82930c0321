// What CUDA graphs shared with the library (StreamView::share_with_graph) and need no more.
#pragma once

namespace tcgemm {

// Of graphs that are gone. Calls CUDA.
void release_graph_objects() noexcept;

}  // namespace tcgemm
