#include "engine/engine.h"

#include <utility>

#include "engine/engine_core.h"
#include "engine/threaded_engine.h"

namespace switchyard {

StatusOr<std::unique_ptr<Engine>> Engine::Create(
    std::unique_ptr<Model> model, const EngineOptions& options
) {
  ASSIGN_OR_RETURN(auto core, EngineCore::Create(std::move(model), options, Clock::now));
  ASSIGN_OR_RETURN(auto engine, ThreadedEngine::Start(std::move(core)));
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace switchyard
