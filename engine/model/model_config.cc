#include "engine/model/model_config.h"

namespace switchyard {

int64_t ModelConfig::StoredLayer(int64_t layer) const {
  return sharing == LayerSharing::kRotate ? layer % stored_layers
                                          : layer / (layers / stored_layers);
}

}  // namespace switchyard
