#include "server/metrics/metric_families.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>

namespace switchyard {

void MetricFamilies::Counter(const std::string& name, const std::string& help) {
  Begin(name, help, prometheus::MetricType::Counter);
}

void MetricFamilies::Gauge(const std::string& name, const std::string& help) {
  Begin(name, help, prometheus::MetricType::Gauge);
}

void MetricFamilies::Histogram(const std::string& name, const std::string& help) {
  Begin(name, help, prometheus::MetricType::Histogram);
}

void MetricFamilies::Begin(
    const std::string& name, const std::string& help, prometheus::MetricType type
) {
  prometheus::MetricFamily family;
  family.name = "switchyard_" + name;
  family.help = help;
  family.type = type;
  families_.push_back(std::move(family));
}

prometheus::ClientMetric& MetricFamilies::AddSeries(const MetricLabels& labels) {
  prometheus::ClientMetric& metric = families_.back().metric.emplace_back();
  metric.label = common_;
  metric.label.insert(metric.label.end(), labels.begin(), labels.end());
  return metric;
}

void MetricFamilies::Add(double value, const MetricLabels& labels) {
  prometheus::ClientMetric& metric = AddSeries(labels);
  if (families_.back().type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
}

void MetricFamilies::Add(const HistogramSnapshot& values, const MetricLabels& labels) {
  prometheus::ClientMetric::Histogram& histogram = AddSeries(labels).histogram;
  uint64_t count = 0;
  for (size_t i = 0; i < values.counts.size(); ++i) {
    count += static_cast<uint64_t>(values.counts[i]);
    const double bound = i < values.upper_bounds.size() ? values.upper_bounds[i]
                                                        : std::numeric_limits<double>::infinity();
    histogram.bucket.push_back({count, bound});
  }
  histogram.sample_count = count;
  histogram.sample_sum = values.sum;
}

std::string MetricFamilies::Text() const {
  std::vector<prometheus::MetricFamily> filled;
  std::ranges::copy_if(families_, std::back_inserter(filled), [](const auto& family) {
    return !family.metric.empty();
  });
  return prometheus::TextSerializer().Serialize(filled);
}

}  // namespace switchyard
