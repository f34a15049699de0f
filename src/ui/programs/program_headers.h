// The parts of a browser's request that reach a program in a pod, and the parts of its answer that
// come back. Both are lists of what passes: cookies, credentials and whatever is not named do not.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "kube/net/http/http.h"

namespace swell::ui {

// The program's own address, as it sees it, and where a browser finds it.
struct ProgramPlace {
  std::string authority;  // SERVICE.NAMESPACE: what its Host header says
  std::string prefix;     // /p/PATH, without a slash at the end
};

// The request below the place's prefix as the program gets it; its body is moved out.
net::HttpRequest ToProgram(net::HttpRequest& request, const ProgramPlace& place);

// The headers of the program's answer as the browser gets them. Redirects stay below the prefix.
net::Headers FromProgram(const net::Headers& headers, const ProgramPlace& place);

// For pages at the port for programs: nobody frames them, and nobody learns their address.
void AddProgramHeaders(net::Headers& headers);
// A page of plain text with these headers, which no browser keeps.
net::HttpResponse ProgramText(int status, std::string_view text);

}  // namespace swell::ui
