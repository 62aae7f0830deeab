#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/histogram.h"

namespace switchyard {

using MetricLabels = std::vector<prometheus::ClientMetric::Label>;

// The content of one scrape, put together metric by metric. Thread-compatible.
class MetricFamilies {
 public:
  // `common` labels stand on every series.
  explicit MetricFamilies(MetricLabels common) : common_(std::move(common)) {}

  // Begins a metric, without a series yet; the name without the prefix "switchyard_". A metric
  // that gets no series is left out.
  void Counter(const std::string& name, const std::string& help);
  void Gauge(const std::string& name, const std::string& help);
  void Histogram(const std::string& name, const std::string& help);

  // One series of the metric begun last.
  void Add(double value, const MetricLabels& labels = {});
  void Add(int64_t value, const MetricLabels& labels = {}) {
    Add(static_cast<double>(value), labels);
  }
  void Add(const HistogramSnapshot& values, const MetricLabels& labels = {});

  // As Prometheus reads it (text exposition format 0.0.4).
  std::string Text() const;

 private:
  void Begin(const std::string& name, const std::string& help, prometheus::MetricType type);
  prometheus::ClientMetric& AddSeries(const MetricLabels& labels);

  const MetricLabels common_;
  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace switchyard
