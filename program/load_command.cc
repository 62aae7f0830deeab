#include <google/protobuf/util/json_util.h>

#include <iostream>
#include <string>

#include "clients/cpp/client.h"
#include "program/command.h"
#include "program/connection_flags.h"
#include "program/text_table.h"

namespace switchyard {
namespace {

struct LoadFlags {
  ConnectionFlags connection;
  bool json = false;
};

Status PrintJson(const v1::GetLoadResponse& load) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(load, &json, options);
  if (!status.ok()) {
    return Internal("the load cannot be written as JSON: ", status.ToString());
  }
  std::cout << json << std::flush;
  return OkStatus();
}

void PrintTable(const v1::GetLoadResponse& load) {
  TextTable table({"", "now"});
  const auto add = [&table](const std::string& name, const auto& value) {
    table.AddRow({name, Concat(value)});
  };
  add("running requests", load.running_requests());
  add("waiting requests", load.waiting_requests());
  add("queued prompt tokens", load.queued_tokens());
  add("open streams", load.open_streams());
  add("KV blocks used", Concat(load.kv_blocks_used(), " of ", load.kv_blocks_total()));
  add("KV blocks cached", load.kv_blocks_cached());
  add("steps", load.steps_total());
  add("preemptions", load.preemptions_total());
  add("stalled streams", load.stalls_total());
  for (const auto& [reason, count] : load.refusals_total()) {
    add(Concat("refused: ", reason), count);
  }
  std::cout << table.ToString();
}

Status PrintLoad(const LoadFlags& flags) {
  ASSIGN_OR_RETURN(const ClientOptions options, ReadConnectionFlags(flags.connection));
  const Client client(flags.connection.server, options);
  ASSIGN_OR_RETURN(const v1::GetLoadResponse load, client.GetLoad());
  if (flags.json) {
    return PrintJson(load);
  }
  PrintTable(load);
  return OkStatus();
}

}  // namespace

void AddLoadCommand(CLI::App& app, RunCommand& run) {
  const auto flags = std::make_shared<LoadFlags>();
  CLI::App* const command =
      app.add_subcommand("load", "Show what a server is doing at this moment");
  command->add_option("--server", flags->connection.server, "A running server, HOST:PORT")
      ->type_name("ADDRESS")
      ->required();
  command->add_flag("--json", flags->json, "All of GetLoad's answer");
  AddConnectionFlags(*command, flags->connection);
  command->callback([flags, &run] { run = [flags] { return PrintLoad(*flags); }; });
}

}  // namespace switchyard
