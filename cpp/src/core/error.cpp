#include "tcgemm/error.hpp"

namespace tcgemm {

// Out of line, so that each class has one vtable and type_info, in libtcgemm.
Error::~Error() = default;
InvalidArgument::~InvalidArgument() = default;
ShapeError::~ShapeError() = default;
DTypeError::~DTypeError() = default;
LayoutError::~LayoutError() = default;
UnsupportedError::~UnsupportedError() = default;
NoKernelError::~NoKernelError() = default;
DeviceError::~DeviceError() = default;
CudaError::~CudaError() = default;
OutOfMemory::~OutOfMemory() = default;

}  // namespace tcgemm
