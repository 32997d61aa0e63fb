#include "nn/forward_hook.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "nn/name_pattern.h"

namespace wengert::nn {

ForwardHook::ForwardHook(ParameterStore& store, std::string pattern,
                         ForwardFunction function)
    : store_(store.state()),
      pattern_(std::move(pattern)),
      function_(std::move(function)) {
  if (!function_) {
    throw Error("ForwardHook: the function is empty; wanted one to call");
  }
  const std::vector<std::string> paths(store_.paths.begin(),
                                       store_.paths.end());
  if (std::none_of(paths.begin(), paths.end(), [&](const std::string& path) {
        return MatchesPattern(pattern_, path);
      })) {
    throw Error(absl::StrCat("ForwardHook: no layer matches '", pattern_, "'; ",
                             NearestName(pattern_, paths)));
  }
  store_.Ref();
  owner_ = OwnerHandle(&store_);
  store_.hooks.push_back(this);
}

ForwardHook::~ForwardHook() { std::erase(store_.hooks, this); }

Tensor ForwardHook::Run(const std::string& path, Tensor y) {
  if (!MatchesPattern(pattern_, path)) return y;
  Tensor replaced = function_(path, y);
  if (!replaced.defined()) return y;
  if (replaced.shape() != y.shape() || replaced.dtype() != y.dtype()) {
    throw Error(absl::StrCat("ForwardHook: '", pattern_, "' returned ",
                             Describe(replaced), " for ", Describe(y), " of '",
                             path, "'; wanted the same"));
  }
  return replaced;
}

Tensor LayerPath::Hooked(Tensor y) const {
  for (ForwardHook* hook : store_->hooks) y = hook->Run(*path_, std::move(y));
  return y;
}

}  // namespace wengert::nn
