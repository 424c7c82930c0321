#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>

#include "core/l2.hpp"
#include "core/runtime.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::runtime {
namespace {

std::string describe(cudaError_t status) {
    return std::string(cudaGetErrorName(status)) + ": " + cudaGetErrorString(status);
}

// Errors that a kernel leaves behind when it faults. Kernels run after their launch returned, so
// that a later call is the first to see it; from then on every call of the process fails.
bool is_sticky(cudaError_t status) {
    switch (status) {
        case cudaErrorIllegalAddress:
        case cudaErrorLaunchFailure:
        case cudaErrorLaunchTimeout:
        case cudaErrorAssert:
        case cudaErrorHardwareStackError:
        case cudaErrorIllegalInstruction:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorECCUncorrectable: return true;
        default: return false;
    }
}

[[noreturn]] void fail(cudaError_t status, const std::string& call) {
    (void)cudaGetLastError();  // not sticky ones go: the next call starts clean
    throw CudaError(is_sticky(status)
                        ? "the device was already in error before " + call + ": " +
                              describe(status) +
                              ". An earlier kernel of this process faulted; restart the process"
                        : call + " failed with " + describe(status),
                    status);
}
#define TCGEMM_CHECK(call)                                \
    do {                                                  \
        const cudaError_t status_ = (call);               \
        if (status_ != cudaSuccess) fail(status_, #call); \
    } while (0)

// Of a call that must not throw. A device error shows again where the work is waited for.
void ignore(cudaError_t status) noexcept {
    if (status != cudaSuccess) (void)cudaGetLastError();  // or a later call would report it
}

// A function of the driver, found at run time: the library is not linked with it. Null where the
// driver is older than 525, or than the one that brought it, with CUDA `since` (12040 is 12.4).
// Not by cudaGetDriverEntryPoint(), which asks for functions of the toolkit's version.
void* driver_function(const char* name, int since) {
    using GetFunction = decltype(&cuGetProcAddress);
    static const auto get = [] {
        void* const driver = dlopen("libcuda.so.1", RTLD_NOW);  // the runtime has loaded it before
        return driver == nullptr
                   ? nullptr
                   : reinterpret_cast<GetFunction>(dlsym(driver, "cuGetProcAddress_v2"));
    }();
    void* function = nullptr;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const bool is_there =
        get != nullptr &&
        get(name, &function, since, CU_GET_PROC_ADDRESS_DEFAULT, &found) == CUDA_SUCCESS &&
        found == CU_GET_PROC_ADDRESS_SUCCESS;
    return is_there ? function : nullptr;
}
void* required_driver_function(const char* name) {
    void* const function = driver_function(name, 12000);
    if (function != nullptr) return function;
    throw CudaError(
        std::string("the NVIDIA driver has no ") + name + "; it must be of version 525 or newer",
        cudaErrorSymbolNotFound);
}
#define TCGEMM_DRIVER_FUNCTION(name) \
    reinterpret_cast<decltype(&name)>(required_driver_function(#name))

// The driver's errors have the runtime's numbers.
void check_driver(CUresult result, const char* call) {
    if (result != CUDA_SUCCESS) fail(static_cast<cudaError_t>(result), call);
}

struct ContextFunctions {
    decltype(&cuDevicePrimaryCtxRetain) retain = TCGEMM_DRIVER_FUNCTION(cuDevicePrimaryCtxRetain);
    decltype(&cuDevicePrimaryCtxGetState) state =
        TCGEMM_DRIVER_FUNCTION(cuDevicePrimaryCtxGetState);
    decltype(&cuCtxPushCurrent) push = TCGEMM_DRIVER_FUNCTION(cuCtxPushCurrent);
    decltype(&cuCtxPopCurrent) pop = TCGEMM_DRIVER_FUNCTION(cuCtxPopCurrent);
    // Not decltype: a later cuda.h gives the name to another function.
    CUresult (*of_stream)(CUstream, CUcontext*) =
        reinterpret_cast<CUresult (*)(CUstream, CUcontext*)>(
            required_driver_function("cuStreamGetCtx"));
};
const ContextFunctions& context_functions() {
    static const ContextFunctions functions;
    return functions;
}

// The context of the runtime's calls on the device; kept until the process ends.
CUcontext primary_context(int device) {
    struct Retained {
        std::once_flag once;
        CUcontext context = nullptr;
    };
    static Retained contexts[kMaxDevices];
    Retained& retained = contexts[device];
    std::call_once(retained.once, [&] {
        check_driver(context_functions().retain(&retained.context, device),
                     "cuDevicePrimaryCtxRetain");
    });
    return retained.context;
}

// Whether it is the primary one, which has all of the device; makes none where there is none.
bool is_primary(CUcontext context, int device) {
    unsigned flags = 0;
    int is_active = 0;
    return context_functions().state(device, &flags, &is_active) == CUDA_SUCCESS && is_active &&
           context == primary_context(device);
}

// While it lives, the stream's context is the current one. Memory of a pool is out of reach for
// calls that are made from another device.
class ContextOf {
   public:
    explicit ContextOf(StreamHandle stream) {
        CUcontext context = nullptr;
        // Default streams are the current device's.
        if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
            return;
        check_driver(context_functions().of_stream(stream, &context), "cuStreamGetCtx");
        check_driver(context_functions().push(context), "cuCtxPushCurrent");
        is_pushed_ = true;
    }
    ~ContextOf() {
        CUcontext left = nullptr;
        if (is_pushed_) (void)context_functions().pop(&left);
    }
    ContextOf(const ContextOf&) = delete;
    ContextOf& operator=(const ContextOf&) = delete;

   private:
    bool is_pushed_ = false;
};

// The library's own pool: freed memory stays in it until release_unused_memory(), so that a
// workspace costs no driver call after the first; the user's default pool keeps its settings.
struct Pool {
    std::once_flag once;
    std::atomic<cudaMemPool_t> handle{nullptr};  // null where the device has no such allocation
};
Pool pools[kMaxDevices];

cudaMemPool_t pool_of(int device) {
    Pool& pool = pools[device];
    std::call_once(pool.once, [&] {
        int supported = 0;
        TCGEMM_CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device));
        if (!supported) return;
        cudaMemPoolProps properties = {};
        properties.allocType = cudaMemAllocationTypePinned;
        properties.location.type = cudaMemLocationTypeDevice;
        properties.location.id = device;
        cudaMemPool_t handle = nullptr;
        TCGEMM_CHECK(cudaMemPoolCreate(&handle, &properties));
        unsigned long long keep_all = ~0ull;
        TCGEMM_CHECK(cudaMemPoolSetAttribute(handle, cudaMemPoolAttrReleaseThreshold, &keep_all));
        pool.handle = handle;
    });
    return pool.handle;
}

}  // namespace

int device_count(std::string* reason, bool* fails) noexcept {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count > 0) return count;
    (void)cudaGetLastError();
    int driver = 0;
    (void)cudaDriverGetVersion(&driver);
    const bool no_driver = status == cudaErrorInsufficientDriver && driver == 0;
    const bool no_device = status == cudaErrorNoDevice || status == cudaSuccess;
    if (fails) *fails = !no_driver && !no_device;
    if (reason) {
        *reason = no_driver   ? "no NVIDIA driver is installed"
                  : no_device ? "no CUDA device is visible (CUDA_VISIBLE_DEVICES?)"
                  : status == cudaErrorInsufficientDriver
                      ? "the NVIDIA driver is too old for the CUDA version of this build; update it"
                      : describe(status);
        if (status == cudaErrorInitializationError) {
            *reason += " (as in a child that was forked by a process which had used CUDA)";
        }
    }
    return 0;
}

DeviceProperties device_properties(int device) {
    cudaDeviceProp raw = {};
    TCGEMM_CHECK(cudaGetDeviceProperties(&raw, device));
    DeviceProperties result;
    result.device = Device::cuda(device);
    result.name = raw.name;
    result.cc_major = raw.major;
    result.cc_minor = raw.minor;
    result.sm_count = raw.multiProcessorCount;
    result.shared_memory_per_block = static_cast<std::int64_t>(raw.sharedMemPerBlockOptin);
    result.l2_bytes = raw.l2CacheSize;
    result.total_memory = static_cast<std::int64_t>(raw.totalGlobalMem);
    int memory_khz = 0, bus_bits = 0;
    TCGEMM_CHECK(cudaDeviceGetAttribute(&result.clock_khz, cudaDevAttrClockRate, device));
    TCGEMM_CHECK(cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, device));
    TCGEMM_CHECK(cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, device));
    result.memory_gb_per_s =
        static_cast<int>(2e-6 * memory_khz * bus_bits / 8);  // double data rate
    return result;
}

int current_device() {
    int device = 0;
    TCGEMM_CHECK(cudaGetDevice(&device));
    return device;
}

// Not cudaPointerGetAttributes(), which may ask the current device's context.
int device_of_address(const void* address) {
    static const auto get = TCGEMM_DRIVER_FUNCTION(cuPointerGetAttribute);
    int device = 0;
    const CUresult result =
        get(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, reinterpret_cast<CUdeviceptr>(address));
    if (result == CUDA_ERROR_INVALID_VALUE) {
        char text[32];
        std::snprintf(text, sizeof text, "%p", address);
        throw DeviceError("address " + std::string(text) +
                          " is not in the memory of a CUDA device");
    }
    check_driver(result, "cuPointerGetAttribute");
    return device;
}

void enter_device(int device) {
    check_driver(context_functions().push(primary_context(device)), "cuCtxPushCurrent");
}

void leave_device(int previous) noexcept {
    CUcontext left = nullptr;
    (void)context_functions().pop(&left);
    // Whoever has called cudaSetDevice() meanwhile, as a framework's allocator may, has changed the
    // device that is current where no context is.
    int current = previous;
    ignore(cudaGetDevice(&current));
    if (current != previous) ignore(cudaSetDevice(previous));
}

void* allocate_async(std::size_t bytes, int device, StreamHandle stream) {
    void* data = nullptr;
    const cudaMemPool_t pool = pool_of(device);
    const cudaError_t status =
        pool ? cudaMallocFromPoolAsync(&data, bytes, pool, stream) : cudaMalloc(&data, bytes);
    if (status == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        throw OutOfMemory("cuda:" + std::to_string(device) + " has no " + std::to_string(bytes) +
                          " bytes left; free memory on the device");
    }
    if (status != cudaSuccess) fail(status, "an allocation of device memory");
    return data;
}

void free_async(void* data, int device, StreamHandle stream) noexcept {
    try {
        const DeviceGuard guard(Device::cuda(device));  // whose default stream it may be
        ignore(pool_of(device) ? cudaFreeAsync(data, stream) : cudaFree(data));
    } catch (...) {  // at the program's end: the driver and its memory are gone
    }
}

void trim_pool(int device) {
    const cudaMemPool_t pool = pools[device].handle;  // made by the first allocation
    if (pool == nullptr) return;
    const DeviceGuard guard(Device::cuda(device));
    TCGEMM_CHECK(cudaMemPoolTrimTo(pool, 0));
}

void copy_async(void* to, const void* from, std::size_t bytes, StreamHandle stream) {
    const ContextOf current(stream);
    TCGEMM_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}
void clear_async(void* data, std::size_t bytes, StreamHandle stream) {
    const ContextOf current(stream);
    TCGEMM_CHECK(cudaMemsetAsync(data, 0, bytes, stream));
}
StreamHandle create_stream() {
    StreamHandle stream = nullptr;
    TCGEMM_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}
void destroy_stream(StreamHandle stream) noexcept { ignore(cudaStreamDestroy(stream)); }
void synchronize_stream(StreamHandle stream) { TCGEMM_CHECK(cudaStreamSynchronize(stream)); }
bool is_capturing(StreamHandle stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    TCGEMM_CHECK(cudaStreamIsCapturing(stream, &status));
    return status != cudaStreamCaptureStatusNone;
}
void share_with_graph(StreamHandle stream, void* object, void (*graph_is_gone)(void*)) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaGraph_t graph = nullptr;
    TCGEMM_CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph));
    cudaUserObject_t shared = nullptr;
    TCGEMM_CHECK(
        cudaUserObjectCreate(&shared, object, graph_is_gone, 1, cudaUserObjectNoDestructorSync));
    // Where this fails, the reference stays: to give it back would call graph_is_gone.
    TCGEMM_CHECK(cudaGraphRetainUserObject(graph, shared, 1, cudaGraphUserObjectMove));
}
EventHandle create_event(bool timing) {
    EventHandle event = nullptr;
    TCGEMM_CHECK(
        cudaEventCreateWithFlags(&event, timing ? cudaEventDefault : cudaEventDisableTiming));
    return event;
}
void destroy_event(EventHandle event) noexcept { ignore(cudaEventDestroy(event)); }
void record_event(EventHandle event, StreamHandle stream) {
    TCGEMM_CHECK(cudaEventRecord(event, stream));
}
void synchronize_event(EventHandle event) { TCGEMM_CHECK(cudaEventSynchronize(event)); }
void wait_event(StreamHandle stream, EventHandle event) {
    TCGEMM_CHECK(cudaStreamWaitEvent(stream, event, 0));
}
float elapsed_ms(EventHandle start, EventHandle stop) {
    float milliseconds = 0;
    TCGEMM_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    return milliseconds;
}

void encode_tensor_map(void* map, const TensorMapShape& shape) {
    static const auto encode = TCGEMM_DRIVER_FUNCTION(cuTensorMapEncodeTiled);
    constexpr int kRank = 5;
    cuuint64_t extents[kRank], strides[kRank - 1];
    for (int dim = 0; dim < kRank; ++dim) extents[dim] = static_cast<cuuint64_t>(shape.extent[dim]);
    for (int dim = 0; dim < kRank - 1; ++dim) {
        strides[dim] = static_cast<cuuint64_t>(shape.stride_bytes[dim]);
    }
    const cuuint32_t box[kRank] = {static_cast<cuuint32_t>(shape.box[0]),
                                   static_cast<cuuint32_t>(shape.box[1]), 1, 1, 1};
    const cuuint32_t element_strides[kRank] = {1, 1, 1, 1, 1};
    // Copies move bits: the element's type only says its size.
    const CUtensorMapDataType type = shape.to_tf32              ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
                                     : shape.element_bytes == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                     : shape.element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                                                                : CU_TENSOR_MAP_DATA_TYPE_UINT32;
    // What L2 gets from memory at a time: two lines gain an H100 (3.35 TB/s) up to 5 %, and cost an
    // H200 (4.8 TB/s) 4 to 9 % where memory is the limit. Where rows begin amid lines, L2 delivers
    // up to a fifth less to requests of two.
    constexpr int kFastMemory = 4000;  // GB/s
    const bool gets_pairs =
        properties(Device::cuda(current_device())).memory_gb_per_s < kFastMemory &&
        reinterpret_cast<std::uintptr_t>(shape.address) % kLineBytes == 0 &&
        std::all_of(
            strides, strides + kRank - 1,
            [](cuuint64_t stride) { return stride % kLineBytes == 0; });
    const CUresult result =
        encode(static_cast<CUtensorMap*>(map), type, kRank, shape.address, extents, strides, box,
               element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               gets_pairs ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    check_driver(result, "cuTensorMapEncodeTiled");
}

namespace {

// Devices before cc 9.0 have no such launches; drivers before 12.3 cannot capture them in a graph.
bool can_overlap(int device) {
    static const bool driver_can = [] {
        int version = 0;
        return cudaDriverGetVersion(&version) == cudaSuccess && version >= 12030;
    }();
    return driver_can && properties(Device::cuda(device)).cc_major >= 9;
}

// More than 48 KB is an opt-in of each kernel on each device. The last one is remembered: asking
// again costs a part of a launch.
cudaError_t allow_shared_bytes(const void* kernel, int device, std::size_t bytes) {
    thread_local const void* last_kernel = nullptr;
    thread_local int last_device = -1;
    thread_local std::size_t last_bytes = 0;
    if (kernel == last_kernel && device == last_device && bytes <= last_bytes) return cudaSuccess;
    const cudaError_t status = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    if (status == cudaSuccess) {
        last_kernel = kernel;
        last_device = device;
        last_bytes = bytes;
    }
    return status;
}

// SMs that kernels in the stream may use where the device has more, as in a green context (CUDA
// 12.4); otherwise 0.
unsigned part_of_sms(StreamHandle stream, int device) {
    using GetResource = CUresult (*)(CUcontext, CUdevResource*, CUdevResourceType);
    static const auto get_resource =
        reinterpret_cast<GetResource>(driver_function("cuCtxGetDevResource", 12040));
    CUcontext context = nullptr;
    CUdevResource resource;
    // The last question takes 0.4 us.
    if (get_resource == nullptr ||
        context_functions().of_stream(stream, &context) != CUDA_SUCCESS ||
        is_primary(context, device) ||
        get_resource(context, &resource, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS) {
        return 0;
    }
    const int all = properties(Device::cuda(device)).sm_count;
    return resource.sm.smCount < static_cast<unsigned>(all) ? resource.sm.smCount : 0;
}

}  // namespace

void launch(const char* name, const void* kernel, const LaunchConfig& config, void** values) {
    constexpr std::size_t kSharedWithoutOptIn = 48 << 10;
    const bool opts_in = config.shared_bytes > kSharedWithoutOptIn;
    cudaError_t status = cudaSuccess;
    int device = 0;
    if (opts_in || config.overlaps_predecessor || config.all_at_once) {
        status = cudaGetDevice(&device);
    }
    if (opts_in && status == cudaSuccess) {
        status = allow_shared_bytes(kernel, device,
                                    std::max(config.shared_bytes, config.most_shared_bytes));
    }

    cudaLaunchAttribute attributes[3] = {};
    unsigned count = 0;
    if (config.cluster > 1) {
        attributes[count].id = cudaLaunchAttributeClusterDimension;
        attributes[count].val.clusterDim.x = static_cast<unsigned>(config.cluster);
        attributes[count].val.clusterDim.y = 1;
        attributes[count].val.clusterDim.z = 1;
        ++count;
    }
    if (config.overlaps_predecessor && can_overlap(device)) {
        attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[count].val.programmaticStreamSerializationAllowed = 1;
        ++count;
    }
    if (config.all_at_once) {
        attributes[count].id = cudaLaunchAttributeCooperative;
        attributes[count].val.cooperative = 1;
        ++count;
    }
    const auto cluster = static_cast<unsigned>(config.cluster);
    unsigned clusters = config.blocks / cluster;  // a grid has whole ones
    // More blocks than there is room for fail, but captured they do not, and never begin. One block
    // an SM always has room.
    if (config.all_at_once && status == cudaSuccess) {
        const unsigned sms = part_of_sms(config.stream.get(), device);
        if (sms > 0) clusters = std::clamp(sms / cluster, 1u, clusters);
    }
    cudaLaunchConfig_t launch_config = {};
    launch_config.gridDim = dim3(clusters * cluster);
    launch_config.blockDim = dim3(config.threads);
    launch_config.dynamicSmemBytes = config.shared_bytes;
    launch_config.stream = config.stream.get();
    launch_config.attrs = attributes;
    launch_config.numAttrs = count;
    if (status == cudaSuccess) status = cudaLaunchKernelExC(&launch_config, kernel, values);
    while (status == cudaErrorCooperativeLaunchTooLarge && clusters > 1) {
        (void)cudaGetLastError();
        clusters = (clusters + 1) / 2;
        launch_config.gridDim.x = clusters * cluster;
        status = cudaLaunchKernelExC(&launch_config, kernel, values);
    }
    if (status != cudaSuccess) fail(status, "the launch of " + std::string(name));
}

}  // namespace tcgemm::runtime
