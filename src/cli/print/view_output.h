// ViewOutput: -o of commands that show a view, not objects of the cluster: a table or sentences for
// people, or the same facts as one document for programs.
// - Threads: one thread.
#pragma once

#include <string>

#include "cli/print/output.h"

namespace swell::cli {

class ViewOutput {
 public:
  void Declare(Flags& flags);
  // What the user typed; before the functions below.
  Status Check();

  bool is_document() const { return !form_.table(); }
  void Print(Session& session, const json::Value& document) const;
  // One line, of a stream of documents. False: nobody reads any more.
  bool PrintLine(Session& session, const json::Value& document) const;

 private:
  std::string text_;
  OutputForm form_;
};

}  // namespace swell::cli
