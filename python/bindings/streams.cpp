#include "streams.hpp"

#include <pthread.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "array_view.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::python {

namespace py = pybind11;

namespace {

constexpr std::uintptr_t kLegacy = 1;

bool is_integer(py::handle value) {
    return PyLong_Check(value.ptr()) && !PyBool_Check(value.ptr());
}

[[noreturn]] void refuse(py::handle stream, const std::string& of_it) {
    throw InvalidArgument("stream is a " + shown(py::type::of(stream)) + ", whose " + of_it);
}

py::object integer_of(py::handle stream, const char* attribute) {
    py::object value = stream.attr(attribute);
    if (is_integer(value)) return value;
    refuse(stream,
           std::string(attribute) + " is " + shown(py::repr(value)) + "; it must be an int");
}

void check_device_of(py::handle stream, const char* attribute, Device device) {
    const py::object ordinal = integer_of(stream, attribute);
    // Negative: CuPy's default streams.
    if (ordinal < py::int_(0) || ordinal.equal(py::int_(device.ordinal))) return;
    throw DeviceError("stream belongs to cuda:" + shown(ordinal) +
                      ", but the product is computed on " + text(device) +
                      (device.is_cpu() ? "; leave stream out" : "; pass a stream of that device"));
}

}  // namespace

StreamHandle stream_from_integer(std::uintptr_t value) {
    return value == kLegacy ? nullptr : reinterpret_cast<StreamHandle>(value);
}

std::intptr_t dlpack_stream(StreamHandle stream) {
    return stream == nullptr ? kLegacy : reinterpret_cast<std::intptr_t>(stream);
}

StreamHandle stream_from_python(py::handle stream, Device device) {
    py::object value = py::reinterpret_borrow<py::object>(stream);
    if (py::hasattr(stream, "cuda_stream")) {  // torch.cuda.Stream
        if (py::hasattr(stream, "device_index")) check_device_of(stream, "device_index", device);
        value = integer_of(stream, "cuda_stream");
    } else if (py::hasattr(stream, "device_id") &&
               py::hasattr(stream, "ptr")) {  // cupy.cuda.Stream
        check_device_of(stream, "device_id", device);
        value = integer_of(stream, "ptr");
    } else if (py::hasattr(stream, "__cuda_stream__")) {
        const py::object method = stream.attr("__cuda_stream__");
        if (PyCallable_Check(method.ptr()) == 0) {
            refuse(stream,
                   "__cuda_stream__ is no method; it must be one that returns (version, handle)");
        }
        const py::object pair = method();
        if (!py::isinstance<py::tuple>(pair) || py::len(pair) != 2) {
            refuse(stream, "__cuda_stream__() returned no pair; it must return (version, handle)");
        }
        value = py::cast<py::tuple>(pair)[1];
        if (!is_integer(value)) {
            refuse(stream, "__cuda_stream__() returned " + shown(py::repr(pair)) +
                               "; it must return (version, handle), the handle an int");
        }
    } else if (!is_integer(value)) {
        throw InvalidArgument(
            "stream is a " + shown(py::type::of(value)) +
            "; pass None, a handle as an int, a torch.cuda.Stream, a cupy.cuda.Stream, "
            "or an object with __cuda_stream__");
    }
    const std::size_t handle = PyLong_AsSize_t(value.ptr());
    if (PyErr_Occurred()) {
        PyErr_Clear();
        throw InvalidArgument("stream is " + shown(value) +
                              "; a handle is 0 (default stream), 1, 2 or an address");
    }
    return stream_from_integer(handle);
}

void order(StreamView earlier, StreamView later, Device device) {
    if (earlier.get() == later.get()) return;
    Event event(device);
    event.record(earlier);
    event.wait_on(later);
}

// --- own streams: never destroyed, as the CUDA runtime may be gone before static objects are

namespace {

struct StreamPool {
    std::mutex mutex;
    std::map<int, std::vector<Stream>> idle;  // by ordinal
    std::map<int, Stream> service;
};

StreamPool& pool() {
    static StreamPool& pool = *new StreamPool;
    return pool;
}

Stream take_stream(Device device) {
    {
        const std::lock_guard<std::mutex> lock(pool().mutex);
        std::vector<Stream>& idle = pool().idle[device.ordinal];
        if (!idle.empty()) {
            Stream stream = std::move(idle.back());
            idle.pop_back();
            return stream;
        }
    }
    return Stream(device);
}

}  // namespace

StreamView service_stream(Device device) {
    const std::lock_guard<std::mutex> lock(pool().mutex);
    auto found = pool().service.find(device.ordinal);
    if (found == pool().service.end()) {
        found = pool().service.emplace(device.ordinal, Stream(device)).first;
    }
    return found->second.view();
}

BorrowedStream::BorrowedStream(Device device) : stream_(take_stream(device)) {}

BorrowedStream::~BorrowedStream() {
    const ReleasedGil no_gil;  // what the stream waits for may need it
    try {
        stream_.view().synchronize();  // after an error the stream may still read host arrays
        const std::lock_guard<std::mutex> lock(pool().mutex);
        pool().idle[stream_.device().ordinal].push_back(std::move(stream_));
    } catch (...) {
        // The device is lost; so is the stream.
    }
}

// --- fork

namespace {

pid_t cuda_pid = 0;         // the process that used CUDA
bool forked_since = false;  // set in its children

void refuse_after_fork() {
    if (!forked_since) return;
    throw DeviceError("process " + std::to_string(cuda_pid) +
                      " used CUDA before it forked this one, and CUDA does not work in such a "
                      "child; start processes with multiprocessing.get_context(\"spawn\"), or set "
                      "TCGEMM_DEVICE=cpu here to compute NumPy arrays on the CPU");
}

}  // namespace

void about_to_use_cuda() {
    refuse_after_fork();
    if (cuda_pid != 0 || cuda_device_count() == 0) return;
    cuda_pid = getpid();
    pthread_atfork(nullptr, nullptr, [] { forked_since = true; });
}

}  // namespace tcgemm::python
