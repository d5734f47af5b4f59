package ipc

// Kind implements Message.
func (*Hello) Kind() Kind { return KindHello }

// Kind implements Message.
func (*Welcome) Kind() Kind { return KindWelcome }

// Kind implements Message.
func (*Auth) Kind() Kind { return KindAuth }

// Kind implements Message.
func (*AuthReply) Kind() Kind { return KindAuthReply }

// Kind implements Message.
func (*CatalogRequest) Kind() Kind { return KindCatalogRequest }

// Kind implements Message.
func (*Catalog) Kind() Kind { return KindCatalog }

// Kind implements Message.
func (*Ask) Kind() Kind { return KindAsk }

// Kind implements Message.
func (*AskReply) Kind() Kind { return KindAskReply }

// Kind implements Message.
func (*EndAsk) Kind() Kind { return KindEndAsk }

// Kind implements Message.
func (*Propose) Kind() Kind { return KindPropose }

// Kind implements Message.
func (*Pending) Kind() Kind { return KindPending }

// Kind implements Message.
func (*Outcome) Kind() Kind { return KindOutcome }

// Kind implements Message.
func (*Withdraw) Kind() Kind { return KindWithdraw }

// Kind implements Message.
func (*Claim) Kind() Kind { return KindClaim }

// Kind implements Message.
func (*Pair) Kind() Kind { return KindPair }

// Kind implements Message.
func (*PairReply) Kind() Kind { return KindPairReply }

// Kind implements Message.
func (*Notice) Kind() Kind { return KindNotice }

// Kind implements Message.
func (*StatusRequest) Kind() Kind { return KindStatusRequest }

// Kind implements Message.
func (*Status) Kind() Kind { return KindStatus }

// Kind implements Message.
func (*Error) Kind() Kind { return KindError }

// Kind implements Message.
func (*InboxRequest) Kind() Kind { return KindInboxRequest }

// Kind implements Message.
func (*Inbox) Kind() Kind { return KindInbox }

// Kind implements Message.
func (*Seen) Kind() Kind { return KindSeen }

// Kind implements Message.
func (*Cable) Kind() Kind { return KindCable }

// Kind implements Message.
func (*CableReply) Kind() Kind { return KindCableReply }

// Kind implements Message.
func (*Challenge) Kind() Kind { return KindChallenge }

// Kind implements Message.
func (*Execute) Kind() Kind { return KindExecute }

// Kind implements Message.
func (*Result) Kind() Kind { return KindResult }

// Kind implements Message.
func (*Abort) Kind() Kind { return KindAbort }

// Kind implements Message.
func (*Job) Kind() Kind { return KindJob }

// Kind implements Message.
func (*JobResult) Kind() Kind { return KindJobResult }

// Kind implements Message.
func (*StickHello) Kind() Kind { return KindStickHello }

// Kind implements Message.
func (*StickOp) Kind() Kind { return KindStickOp }

// Kind implements Message.
func (*StickReply) Kind() Kind { return KindStickReply }

// blank returns an empty message of the kind to decode into, or nil for a kind that does not exist.
func blank(k Kind) Message {
	switch k {
	case KindHello:
		return new(Hello)
	case KindWelcome:
		return new(Welcome)
	case KindAuth:
		return new(Auth)
	case KindAuthReply:
		return new(AuthReply)
	case KindCatalogRequest:
		return new(CatalogRequest)
	case KindCatalog:
		return new(Catalog)
	case KindAsk:
		return new(Ask)
	case KindAskReply:
		return new(AskReply)
	case KindEndAsk:
		return new(EndAsk)
	case KindPropose:
		return new(Propose)
	case KindPending:
		return new(Pending)
	case KindOutcome:
		return new(Outcome)
	case KindWithdraw:
		return new(Withdraw)
	case KindClaim:
		return new(Claim)
	case KindPair:
		return new(Pair)
	case KindPairReply:
		return new(PairReply)
	case KindNotice:
		return new(Notice)
	case KindStatusRequest:
		return new(StatusRequest)
	case KindStatus:
		return new(Status)
	case KindError:
		return new(Error)
	case KindInboxRequest:
		return new(InboxRequest)
	case KindInbox:
		return new(Inbox)
	case KindSeen:
		return new(Seen)
	case KindCable:
		return new(Cable)
	case KindCableReply:
		return new(CableReply)
	case KindChallenge:
		return new(Challenge)
	case KindExecute:
		return new(Execute)
	case KindResult:
		return new(Result)
	case KindAbort:
		return new(Abort)
	case KindJob:
		return new(Job)
	case KindJobResult:
		return new(JobResult)
	case KindStickHello:
		return new(StickHello)
	case KindStickOp:
		return new(StickOp)
	case KindStickReply:
		return new(StickReply)
	}
	return nil
}
