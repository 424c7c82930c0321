#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "dispatch/select.hpp"
#include "tcgemm/plan.hpp"

namespace tcgemm {
namespace {

// A plan holds some 5 KB. Programs with more different shapes than this start over: the
// cache is emptied, which costs each shape one more selection (tens of microseconds).
constexpr std::size_t kMaxPlans = 4096;

// Every field that a plan depends on: a struct's own bytes have padding in between.
class Key {
   public:
    Key(const GemmProblem& p, Device device, const Forced& forced) {
        add(device.ordinal), add(p.m), add(p.n), add(p.k), add(p.batch_rank);
        for (const int mode : {static_cast<int>(p.precision), static_cast<int>(p.accumulate),
                               static_cast<int>(p.determinism)}) {
            add(mode);
        }
        const int rank = p.batch_rank < 0 || p.batch_rank > kMaxBatchDims ? 0 : p.batch_rank;
        for (int dim = 0; dim < rank; ++dim) add(p.batch_shape[dim]);
        for (const Scale* s : {&p.scale_a, &p.scale_b}) {
            add(static_cast<int>(s->kind));
            if (s->kind == ScaleKind::none) continue;
            add(s->outer_stride), add(s->k_stride);
            for (int dim = 0; dim < rank; ++dim) add(s->batch_stride[dim]);
        }
        add(p.scale_d ? 1 : 0), add(static_cast<int>(p.overflow));
        for (const Operand* o : {&p.a, &p.b, &p.c, &p.d}) {
            add(static_cast<int>(o->dtype)), add(o->alignment), add(o->row_stride),
                add(o->col_stride);
            for (int dim = 0; dim < rank; ++dim) add(o->batch_stride[dim]);
        }
        add(reinterpret_cast<std::intptr_t>(&forced));
    }
    bool operator==(const Key& other) const {
        return count_ == other.count_ &&
               std::equal(words_.begin(), words_.begin() + count_, other.words_.begin());
    }
    std::size_t hash() const {
        constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
        std::uint64_t lanes[2] = {};                           // two multiplications at a time
        for (int i = 0; i < count_; ++i) {
            lanes[i % 2] = (lanes[i % 2] ^ static_cast<std::uint64_t>(words_[i])) * kGolden;
        }
        const std::uint64_t hash = lanes[0] ^ (lanes[1] >> 1);
        return hash ^ (hash >> 32);  // products carry upwards only
    }

   private:
    void add(std::int64_t word) { words_[count_++] = word; }
    std::array<std::int64_t, 11 + kMaxBatchDims + 4 * (4 + kMaxBatchDims) + 2 * (3 + kMaxBatchDims)>
        words_;
    int count_ = 0;  // so many words are used
};
struct KeyHash {
    std::size_t operator()(const Key& key) const { return key.hash(); }
};

struct Cache {
    std::mutex mutex;
    std::atomic<std::uint32_t> clearings{0};
    std::unordered_map<Key, std::shared_ptr<const Plan>, KeyHash> plans;
};
// Never destroyed: other threads may still multiply while the process exits.
Cache& cache() {
    static Cache& cache = *new Cache;
    return cache;
}

}  // namespace

std::shared_ptr<const Plan> cached_plan(const GemmProblem& problem, Device device) {
    const Forced& forced = forced_by_environment();  // read once: the plan is the key's
    const Key key(problem, device, forced);
    auto& [mutex, clearings, plans] = cache();
    {
        const std::lock_guard<std::mutex> lock(mutex);
        const auto found = plans.find(key);
        if (found != plans.end()) return found->second;
    }
    std::shared_ptr<const Plan> plan(new Plan(problem, device, forced));  // may take long: no lock
    const std::lock_guard<std::mutex> lock(mutex);
    if (plans.size() >= kMaxPlans) plans.clear();
    return plans.emplace(key, std::move(plan)).first->second;
}

void clear_plan_cache() {
    const std::lock_guard<std::mutex> lock(cache().mutex);
    ++cache().clearings;
    cache().plans.clear();
}

std::uint64_t plan_cache_generation() {
    return std::uint64_t{cache().clearings} << 32 | forced_by_environment().serial;
}

}  // namespace tcgemm
