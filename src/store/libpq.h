// PostgreSQL's client library, loaded when the first PostgreSQL database is opened: who uses SQLite
// need not have it, and the privileged processes never hold its code or that of the thirty
// libraries it brings along.
#pragma once

#include <postgresql/libpq-fe.h>

#include "base/error.h"

namespace caisson::store {

// Every function we use, under its own name without the "PQ".
// clang-format off
#define CAISSON_LIBPQ(X) \
  X(connectdbParams) \
  X(conninfoParse) \
  X(conninfoFree) \
  X(status) \
  X(errorMessage) \
  X(finish) \
  X(socket) \
  X(setnonblocking) \
  X(parameterStatus) \
  X(setNoticeProcessor) \
  X(sendQuery) \
  X(sendPrepare) \
  X(sendQueryPrepared) \
  X(flush) \
  X(isBusy) \
  X(consumeInput) \
  X(getResult) \
  X(resultStatus) \
  X(resultErrorField) \
  X(clear) \
  X(cmdTuples) \
  X(ntuples) \
  X(getvalue) \
  X(getlength) \
  X(getisnull) \
  X(notifies) \
  X(freemem) \
  X(transactionStatus)
// clang-format on

struct Libpq {
#define CAISSON_LIBPQ_FIELD(name) decltype(&::PQ##name) name = nullptr;
  CAISSON_LIBPQ(CAISSON_LIBPQ_FIELD)
#undef CAISSON_LIBPQ_FIELD

  // The same for the whole life of the program. kFailedPrecondition: it is not installed.
  static Result<const Libpq*> Get();
};

}  // namespace caisson::store
