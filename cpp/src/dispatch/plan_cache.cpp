#include <mutex>
#include <string>
#include <unordered_map>

#include "dispatch/select.hpp"
#include "tcgemm/plan.hpp"

namespace tcgemm {
namespace {

// A plan holds a few hundred bytes. Programs with more different shapes than this start over: the
// cache is emptied, which costs each shape one more selection (tens of microseconds).
constexpr std::size_t kMaxPlans = 4096;

std::mutex& cache_mutex() {
    static std::mutex mutex;
    return mutex;
}
std::unordered_map<std::string, std::shared_ptr<const Plan>>& cache() {
    static std::unordered_map<std::string, std::shared_ptr<const Plan>> plans;
    return plans;
}

// Every field that a plan depends on, as bytes: a struct's own bytes have padding in between.
class Key {
   public:
    Key(const GemmProblem& p, Device device, const Forced& forced) {
        bytes_.reserve(512);
        add(device.ordinal), add(p.m), add(p.n), add(p.k), add(p.batch_rank);
        add(p.precision), add(p.accumulate), add(p.determinism), add(p.epilogue);
        const int rank = p.batch_rank < 0 || p.batch_rank > kMaxBatchDims ? 0 : p.batch_rank;
        for (int dim = 0; dim < rank; ++dim) add(p.batch_shape[dim]);
        for (const Operand* o : {&p.a, &p.b, &p.c, &p.d}) {
            add(o->dtype), add(o->row_stride), add(o->col_stride), add(o->alignment);
            for (int dim = 0; dim < rank; ++dim) add(o->batch_stride[dim]);
        }
        bytes_ += forced.family + '\n' + forced.kernel;
    }
    const std::string& bytes() const { return bytes_; }

   private:
    template <class T>
    void add(const T& value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    std::string bytes_;
};

}  // namespace

std::shared_ptr<const Plan> cached_plan(const GemmProblem& problem, Device device) {
    const Key key(problem, device, forced_by_environment());
    {
        const std::lock_guard<std::mutex> lock(cache_mutex());
        const auto found = cache().find(key.bytes());
        if (found != cache().end()) return found->second;
    }
    auto plan = std::make_shared<const Plan>(problem, device);  // may take long, or throw: no lock
    const std::lock_guard<std::mutex> lock(cache_mutex());
    if (cache().size() >= kMaxPlans) cache().clear();
    return cache().emplace(key.bytes(), std::move(plan)).first->second;
}

void clear_plan_cache() {
    const std::lock_guard<std::mutex> lock(cache_mutex());
    cache().clear();
}

}  // namespace tcgemm
