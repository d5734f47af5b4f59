package boardtest

import (
	"errors"
	"fmt"

	"periph.io/x/conn/v3"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"
)

// maxSPI is the fastest clock of the slower controller (SH1106 version 2.3, serial interface).
const maxSPI = 4 * physic.MegaHertz

// SPI is a bus with one display on it, whose two other wires are lines of a kernel.
type SPI struct {
	Display *OLED
	Kernel  *Kernel
	Data    *Line // data when active, commands when not
	Reset   *Line // holds the controller in reset while it is not active; nil: it has its own

	connected bool
}

var _ spi.PortCloser = (*SPI)(nil)

func (s *SPI) String() string { return "boardtest" }

// LimitSpeed implements spi.PortCloser.
func (s *SPI) LimitSpeed(physic.Frequency) error { return nil }

// Connect implements spi.Port.
func (s *SPI) Connect(f physic.Frequency, mode spi.Mode, bits int) (spi.Conn, error) {
	if s.connected || f > maxSPI || mode != spi.Mode0 || bits != 8 {
		return nil, fmt.Errorf("boardtest: %v in mode %v with %d bits", f, mode, bits)
	}
	s.connected = true
	return spiConn{s}, nil
}

// Close implements spi.PortCloser.
func (s *SPI) Close() error {
	s.connected = false
	return s.Display.Close()
}

type spiConn struct{ port *SPI }

func (c spiConn) String() string { return "boardtest" }

// Duplex implements conn.Conn.
func (c spiConn) Duplex() conn.Duplex { return conn.Half }

// TxPackets implements spi.Conn.
func (c spiConn) TxPackets([]spi.Packet) error {
	return errors.New("boardtest: packets are not known here")
}

// Tx implements conn.Conn. Whether a display is there, and what it makes of the bytes, nobody learns.
func (c spiConn) Tx(w, r []byte) error {
	s := c.port
	if !s.connected || len(r) > 0 || len(w) == 0 {
		return fmt.Errorf("boardtest: %d bytes out and %d in", len(w), len(r))
	}
	if s.Reset != nil && !s.Kernel.Lit(s.Reset) {
		s.Display.PowerCycle()
		return nil
	}
	control := byte(0x00)
	if s.Kernel.Lit(s.Data) {
		control = 0x40
	}
	if err := s.Display.Tx(OLEDAddress, append([]byte{control}, w...), nil); err != nil && !errors.Is(err, ErrNAK) {
		return err // no data sheet has that: the test must see it
	}
	return nil
}
