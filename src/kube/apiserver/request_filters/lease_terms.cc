#include "kube/apiserver/request_filters/lease_terms.h"

#include "base/strings.h"
#include "kube/api/meta/lease_term.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {

Status CheckLeaseTerm(Core& core, const Call& call) {
  const auto asked = call.query.Find(api::kLeaseTermParameter);
  if (!asked) return Status::Ok();
  const auto term = api::LeaseTerm::Parse(*asked);
  if (!term) {
    return BadRequestError(StrCat(api::kLeaseTermParameter, ": Invalid value: ", Quote(*asked),
                                  ": must be NAMESPACE/NAME/UID/TRANSITIONS of a Lease"));
  }
  const store::EntryPtr lease =
      core.store.Latest({"leases.coordination.k8s.io", term->ns, term->name});
  if (lease && api::LeaseTerm::Of(*lease->Parsed()) == *term) return Status::Ok();
  return ConflictError(
      *call.kind, call.info.name,
      StrCat("it was asked for by a holder of lease ", term->ns, "/", term->name,
             " that holds it no more (", api::kLeaseTermParameter, " ", *asked, ")"));
}

}  // namespace swell::apiserver
