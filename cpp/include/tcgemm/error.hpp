// Exceptions. Every class derives from tcgemm::Error (code and message) and from the std:: class
// that a caller would expect. Errors about arguments are thrown before anything is launched: D is
// untouched. No exception crosses the C interface (tcgemm.h), which returns the code.
#pragma once

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "tcgemm/export.h"

namespace tcgemm {

// The values are those of tcgemm_status in tcgemm.h; they never change their meaning.
enum class ErrorCode : int {
    ok = 0,
    invalid_argument = 1,  // a wrong value, or values that do not go together
    invalid_shape = 2,     // sizes that are negative, do not fit each other or overflow int64
    invalid_dtype = 3,     // an element type, or a mix of them, that is not accepted
    invalid_layout = 4,    // strides, alignment, overlap, a null pointer or no write access
    unsupported = 5,       // well formed, but not in this version of the library or on this device
    no_kernel = 6,         // no kernel takes the problem on this device, or a forced one refuses
    device = 7,            // no such device, no driver, operands on different devices
    out_of_memory = 8,
    cuda = 9,  // the CUDA runtime or driver reported an error
    internal = 10,
};

class TCGEMM_API Error {
   public:
    virtual ~Error();
    ErrorCode code() const noexcept { return code_; }
    virtual const char* what() const noexcept = 0;

   protected:
    explicit Error(ErrorCode code) noexcept : code_(code) {}

   private:
    ErrorCode code_;
};

class TCGEMM_API InvalidArgument : public std::invalid_argument, public Error {
   public:
    explicit InvalidArgument(const std::string& message,
                             ErrorCode code = ErrorCode::invalid_argument)
        : std::invalid_argument(message), Error(code) {}
    ~InvalidArgument() override;
    const char* what() const noexcept override { return std::invalid_argument::what(); }
};

class TCGEMM_API ShapeError : public InvalidArgument {
   public:
    explicit ShapeError(const std::string& message)
        : InvalidArgument(message, ErrorCode::invalid_shape) {}
    ~ShapeError() override;
};

class TCGEMM_API DTypeError : public InvalidArgument {
   public:
    explicit DTypeError(const std::string& message)
        : InvalidArgument(message, ErrorCode::invalid_dtype) {}
    ~DTypeError() override;
};

class TCGEMM_API LayoutError : public InvalidArgument {
   public:
    explicit LayoutError(const std::string& message)
        : InvalidArgument(message, ErrorCode::invalid_layout) {}
    ~LayoutError() override;
};

class TCGEMM_API UnsupportedError : public std::runtime_error, public Error {
   public:
    explicit UnsupportedError(const std::string& message)
        : std::runtime_error(message), Error(ErrorCode::unsupported) {}
    ~UnsupportedError() override;
    const char* what() const noexcept override { return std::runtime_error::what(); }
};

class TCGEMM_API NoKernelError : public std::runtime_error, public Error {
   public:
    explicit NoKernelError(const std::string& message)
        : std::runtime_error(message), Error(ErrorCode::no_kernel) {}
    ~NoKernelError() override;
    const char* what() const noexcept override { return std::runtime_error::what(); }
};

class TCGEMM_API DeviceError : public std::runtime_error, public Error {
   public:
    explicit DeviceError(const std::string& message)
        : std::runtime_error(message), Error(ErrorCode::device) {}
    ~DeviceError() override;
    const char* what() const noexcept override { return std::runtime_error::what(); }
};

class TCGEMM_API CudaError : public std::runtime_error, public Error {
   public:
    CudaError(const std::string& message, int status)
        : std::runtime_error(message), Error(ErrorCode::cuda), status_(status) {}
    ~CudaError() override;
    const char* what() const noexcept override { return std::runtime_error::what(); }
    int status() const noexcept { return status_; }  // the cudaError_t

   private:
    int status_;
};

class TCGEMM_API OutOfMemory : public std::bad_alloc, public Error {
   public:
    explicit OutOfMemory(std::string message)
        : Error(ErrorCode::out_of_memory), message_(std::move(message)) {}
    ~OutOfMemory() override;
    const char* what() const noexcept override { return message_.c_str(); }

   private:
    std::string message_;
};

}  // namespace tcgemm
